"""The pipelines of examples/, and which of them can be planned anywhere."""

from __future__ import annotations

from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

#: Planning these asks a database for columns: the tests that are named start one, and plan and run them.
ASKING = {EXAMPLES / "orders" / "orders.yaml": "tests/orders"}


def planned_anywhere() -> list[Path]:
    """All that need nothing but this repository, without files of tests."""
    found = sorted(path for path in EXAMPLES.rglob("*.yaml") if not path.stem.endswith("_test"))
    return [path for path in found if path not in ASKING]
