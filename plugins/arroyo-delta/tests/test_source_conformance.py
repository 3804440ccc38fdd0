"""The source and the lookup keep the rules of `arroyo_testing.conformance`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arroyo_testing.conformance import Check, Conformance, LookupCase, NotApplicable, SourceCase
from deltalake import DeltaTable, write_deltalake

ROWS = pa.table({"id": list(range(12)), "name": ["a", "b c", None, "d/e"] * 3, "price": [1.5, None, -4.25] * 4})


def parts(folder: Path, **options: Any) -> str:
    """A table with rows in several versions and files."""
    path = str(folder / "table")
    for begin in range(0, 12, 4):
        write_deltalake(path, ROWS.slice(begin, 4), mode="append", **options)
    return path


def snapshot(folder: Path) -> dict[str, Any]:
    return {"table": parts(folder)}


def versions(folder: Path) -> dict[str, Any]:
    return {"table": parts(folder, partition_by=["name"]), "start": {"version": 0}}


def changes(folder: Path) -> dict[str, Any]:
    path = parts(folder)
    DeltaTable(path).delete("id % 3 = 1")
    return {"table": path, "start": {"version": 0}, "changes": True, "keys": ["id"]}


def change_feed(folder: Path) -> dict[str, Any]:
    path = parts(folder, configuration={"delta.enableChangeDataFeed": "true"})
    DeltaTable(path).delete("id % 3 = 1")
    DeltaTable(path).update({"price": "price + 1"}, predicate="id % 3 = 2")
    DeltaTable(path).optimize.compact()
    return {"table": path, "start": {"version": 0}, "changes": True}


def checks() -> list[Check]:
    cases = [
        SourceCase("delta.source", snapshot),
        LookupCase("delta.lookup", snapshot, rows=ROWS),
        SourceCase("delta.source", versions, id="delta.source by versions"),
        SourceCase("delta.source", changes, id="delta.source with changes"),
        SourceCase("delta.source", change_feed, id="delta.source with a change feed"),
    ]
    suite = Conformance("arroyo_delta.plugin", cases)
    return [check for check in suite.checks() if check.name != "every_operator_has_a_case"]


@pytest.mark.parametrize("check", checks(), ids=str)
def test_conformance(check: Check) -> None:
    if check.skip:
        pytest.skip(check.skip)
    try:
        check.run()
    except NotApplicable as reason:
        pytest.skip(str(reason))
