"""The rules that every operator must keep; see `arroyo_testing.conformance`."""

import pyarrow as pa
from arroyo_testing.conformance import Conformance, OperatorCase

ROWS = pa.table({"word": ["a", "b", "a", None, "c", "a", "b", None], "n": [3, 1, None, 4, 1, -5, 9, 2]})

conformance = Conformance(
    "arroyo_template_operator.plugin",
    [OperatorCase("template.totals", {"key": "word", "value": "n"}, inputs=[ROWS], latest_by=["word"])],
)
