"""Queries of Nexmark with user functions give the rows of their SQL forms; so does a window with a user aggregate."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from arroyo_core.plugin import installed_plugins

from ..lives.answers import Tables, answer, differences, read_written
from ..lives.lives import LIVES, Life, PipelineFile
from .events import Events
from .test_queries import BIDS, MORNING
from .udfs.functions import FUNCTIONS

FOLDER = Path(__file__).with_name("udfs")
PIPELINES = sorted(FOLDER.glob("*.yaml"))
EVENTS = {"q14": MORNING}


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES.keys())
@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_user_functions_give_the_rows_of_duckdb(
    path: Path, life: Life, folder: Path, tables_of: Callable[[Events], Tables]
) -> None:
    events = EVENTS.get(path.stem, BIDS)
    installed = installed_plugins()
    plugins = dataclasses.replace(installed, registry=installed.registry.with_udfs(FUNCTIONS))
    settings = {"nexmark.source": events.source}
    life(PipelineFile(path, epoch_rows=events.epoch_rows, settings=settings, plugins=plugins))
    # The same answers as the SQL forms have, where there are such.
    query = next(each for each in (path.with_suffix(".sql"), FOLDER.parent / f"{path.stem}.sql") if each.exists())
    expected = answer(query.read_text(), tables_of(events))
    assert differences(expected, read_written(folder / "out" / path.stem, expected.schema)) == []


def test_there_is_a_pipeline_for_every_query_that_calls_for_one() -> None:
    assert [path.stem for path in PIPELINES] == ["q14", "q21", "q22", "usual_channels"]
