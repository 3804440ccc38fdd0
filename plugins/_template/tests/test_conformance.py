"""The rules that every operator must keep; see `arroyo_core.testing.conformance`."""

import pyarrow as pa

from arroyo_core.testing.conformance import Conformance, OperatorCase

ROWS = pa.table({"word": ["a", "b", "a", None, "c", "a", "b", None], "n": range(8)})

conformance = Conformance(
    "arroyo_template.plugin",
    [OperatorCase("template.running_count", {"key": "word", "column": "nth"}, inputs=[ROWS])],
)
