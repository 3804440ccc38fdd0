import pyarrow as pa
from acme.plugin import RunningCount

batch = pa.record_batch({"word": ["a", "b", "a"]})

from arroyo_core import ArroyoSchema
from arroyo_core.testing import OperatorHarness

with OperatorHarness(RunningCount, inputs=[ArroyoSchema(batch.schema)]) as harness:
    harness.process(batch)
    harness.checkpoint()
    harness.restore()  # a fresh operator, from the checkpoint
    harness.process(batch)
    assert harness.output.num_rows == 2 * batch.num_rows

import pyarrow as pa

from arroyo_core.testing.conformance import Conformance, OperatorCase

conformance = Conformance(
    "acme.plugin",
    [OperatorCase("acme.running_count", {}, inputs=[pa.table({"word": ["a", "b", None, "a"]})])],
)

conformance.run()
