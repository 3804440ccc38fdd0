"""The sink keeps the rules of `arroyo_testing.conformance`; visible is what the library reads from the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arroyo_testing.conformance import Check, Conformance, NotApplicable, SinkCase

from .support.tables import read

ROWS = pa.table({"id": list(range(12)), "name": ["a", "b", None, "d"] * 3, "price": [1.5, None, -4.25] * 4})
KEYED = pa.table({"name": ["a", "b", None, "d"] * 3, "price": [1.5, None, -4.25] * 4, "n": list(range(12))})


def config(**settings: Any) -> Callable[[Path], Mapping[str, Any]]:
    return lambda folder: {"table": str(folder / "table"), "if_missing": "create", **settings}


def visible(schema: pa.Schema) -> Callable[[Path], pa.Table]:
    return lambda folder: read(folder / "table", schema)


def checks() -> list[Check]:
    cases = [
        SinkCase("delta.sink", config(), [ROWS], visible=visible(ROWS.schema)),
        SinkCase(
            "delta.sink",
            config(partition_by=["name"], schema_evolution="add"),
            [ROWS],
            visible=visible(ROWS.schema),
            id="delta.sink with partitions",
        ),
        SinkCase(
            "delta.sink",
            config(mode="overwrite_partitions", partition_by=["name"]),
            [ROWS],
            visible=visible(ROWS.schema),
            id="delta.sink that overwrites",
            skip={"another_incarnation": "another job replaces what this one has left"},
        ),
        SinkCase(
            "delta.sink",
            config(mode="merge", keys=["name"]),
            [KEYED],
            visible=visible(KEYED.schema),
            latest_by=["name"],
            id="delta.sink that merges",
        ),
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
