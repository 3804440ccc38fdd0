"""A condition that is told to a source of files changes in the middle of them: it holds for what is read since."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ..lives.places import empty_folder
from .sql_edit import SqlEdit, sink
from .streams import OUT
from .test_sql_edits import EditedScript

ROWS, FILES = 6_000, 6
FIRST, SECOND = (0, 4_000), (2_000, 6_000)


class FilesScript(EditedScript):
    """Its epochs are so many rows long: an epoch as short as a moment may read nothing of a file."""

    def plan(self, nodes: Any, *, parallelism: int = 2) -> Any:
        plan = super().plan(nodes, parallelism=parallelism)
        return dataclasses.replace(
            plan, checkpoint=dataclasses.replace(plan.checkpoint, interval_ms=3_600_000, rows=500)
        )


@pytest.fixture
def folder() -> Iterator[Path]:
    with empty_folder() as path:
        yield path


def write(folder: Path) -> None:
    each = ROWS // FILES
    for number in range(FILES):
        # Every file has the first and the last numbers, in row groups of their own.
        table = pa.table({"id": range(number, ROWS, FILES)})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=each // 10)


def script(folder: Path, bounds: tuple[int, int]) -> str:
    low, high = bounds
    return (
        f"CREATE TABLE numbers (id BIGINT) WITH (connector = 'filesystem', type = 'source', path = '{folder}', "
        f"format = 'parquet', batch_rows = 500);\n{sink()}"
        f"INSERT INTO {OUT} SELECT id, id AS same FROM numbers WHERE id >= {low} AND id < {high};\n"
    )


def test_rows_are_those_that_the_condition_of_their_life_asks_for(folder: Path) -> None:
    data = folder / "data"
    data.mkdir()
    write(data)
    lives = [script(data, FIRST), script(data, SECOND)]
    job = FilesScript(folder, SqlEdit(title="", subject="", lives=lives))
    plan = job.plan(lives[0])
    assert b"id < 4000" in next(node for node in plan.nodes.values() if node.operator == "filesystem.source").config
    assert job.run(lives).is_finished
    found = job.outputs[OUT].net(["id"])
    numbers = {number for (number,) in found}
    assert set(found.values()) == {1}
    assert set(range(SECOND[0], FIRST[1])) <= numbers
    # The first life has read something, and the second one does not begin again.
    assert 0 < len(numbers & set(range(SECOND[0]))) < SECOND[0]
    assert 0 < len(numbers & set(range(*SECOND))) <= SECOND[1] - SECOND[0]
