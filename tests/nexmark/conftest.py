"""Where the queries run: an empty folder in memory, sources with small batches, and no warm cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import arroyo_nexmark.source
import pytest

from ..lives.answers import Tables
from ..lives.places import ROOT, empty_folder
from .events import Events, make_events

#: So that even one epoch takes many batches.
BATCH_ROWS = 700


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, from which a pipeline finds its data, and into which it writes."""
    with empty_folder() as path:
        (path / "examples").symlink_to(ROOT / "examples")
        monkeypatch.chdir(path)
        yield path


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arroyo_nexmark.source, "BATCH_ROWS", BATCH_ROWS)


@pytest.fixture(scope="session")
def tables_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Events], Tables]:
    """The tables that a query's sources make, made once for all that make the same."""
    made: dict[str, Tables] = {}

    def tables_of(events: Events) -> Tables:
        key = repr(sorted(events.source.items()))
        if key not in made:
            made[key] = make_events(events.source, tmp_path_factory.mktemp("events"))
        return made[key]

    return tables_of
