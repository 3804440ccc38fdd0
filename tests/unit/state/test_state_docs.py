"""The examples of the documentation of state run as they are written."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"


def test_the_examples_of_state_tables_run():
    text = (DOCS / "state-tables.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "state-tables.md", "exec"), names)
