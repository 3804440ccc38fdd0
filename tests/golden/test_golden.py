"""Every stateful operator gives what DuckDB says, whole, killed at every epoch, and at changing parallelism.

A pipeline `x.yaml` writes to `out/x`, and `x.sql` is the answer. One with a second output writes it to `out/x.y`, and
its answer is `x.y.sql`. Where rows depend on how the input was cut, `x.defined` is a query for what of them does not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ..lives.answers import Tables, answer, differences, read_written
from ..lives.lives import LIVES, Life, PipelineFile, killed_at_every_epoch

FOLDER = Path(__file__).with_name("pipelines")
PIPELINES = sorted(FOLDER.glob("*.yaml"))
#: By the number of streams in time: at most a seventh of what a pipeline reads.
EPOCH_ROWS = {0: 280, 1: 280, 2: 480}

#: What must have a pipeline; joins, ranks and duplicates of both kinds do.
OPERATORS = {
    "std.assign_window",
    "std.asof_join",
    "std.deduplicate",
    "std.interval_join",
    "std.join",
    "std.lookup_join",
    "std.neighbors",
    "std.process",
    "std.session_window",
    "std.sliding_window",
    "std.sql",
    "std.top_n",
    "std.tumbling_window",
    "std.updating_aggregate",
    "std.upsert",
    "std.watermark",
    "std.window_function",
    "std.window_join",
}


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES.keys())
@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_a_pipeline_gives_the_rows_of_duckdb(path: Path, life: Life, folder: Path, tables: Tables) -> None:
    streams = sum(node["operator"] == "std.watermark" for node in nodes_of(path))
    life(PipelineFile(path, epoch_rows=EPOCH_ROWS[streams]))
    answers = [FOLDER / f"{path.stem}.sql", *FOLDER.glob(f"{path.stem}.*.sql")]
    assert {place.name for place in (folder / "out").iterdir()} == {query.stem for query in answers}
    for query in answers:
        expected = answer(query.read_text(), tables)
        found = read_written(folder / "out" / query.stem, expected.schema)
        defined = query.with_suffix(".defined")
        if defined.exists():
            found = [(answer(defined.read_text(), {"rows": rows}), sign) for rows, sign in found]
        assert differences(expected, found) == []
        if life is killed_at_every_epoch:
            assert all(rows.num_rows for rows, _ in found), "no result has ever changed"


def test_every_stateful_operator_has_a_pipeline() -> None:
    used = {node["operator"] for path in PIPELINES for node in nodes_of(path)}
    assert used >= OPERATORS


def nodes_of(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load(path.read_text())["nodes"])
