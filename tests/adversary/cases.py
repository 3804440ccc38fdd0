"""What is run against the adversary: golden pipelines and queries of Nexmark, and what DuckDB says of each."""

from __future__ import annotations

import atexit
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import arroyo_nexmark.source
import pytest

from ..golden import inputs, test_golden
from ..lives.answers import SignedRows, Tables, answer, differences, read_written, without_zones
from ..lives.lives import PipelineFile
from ..lives.places import ROOT, empty_folder
from ..nexmark import conftest as nexmark_place
from ..nexmark import test_queries
from ..nexmark.events import make_events


@dataclass(frozen=True, slots=True)
class Place:
    """An empty folder to run in, and the rows that pipelines read there."""

    folder: Path
    tables: Tables


class GoldenCase:
    """A pipeline of `tests/golden`, with all its outputs."""

    def __init__(self, path: Path) -> None:
        self.name = f"golden {path.stem}"
        self._path = path

    def file(self) -> PipelineFile:
        streams = sum(node["operator"] == "std.watermark" for node in test_golden.nodes_of(self._path))
        return PipelineFile(self._path, epoch_rows=test_golden.EPOCH_ROWS[streams])

    @contextmanager
    def place(self) -> Iterator[Place]:
        folder, tables = golden_input()
        with empty_folder() as path, settings(path):
            (path / "in").symlink_to(folder)
            yield Place(path, tables)

    def problems(self, place: Place) -> list[str]:
        answers = [test_golden.FOLDER / f"{self._path.stem}.sql", *test_golden.FOLDER.glob(f"{self._path.stem}.*.sql")]
        found = []
        for query in answers:
            defined = query.with_suffix(".defined")
            found += compare(
                place.folder / "out" / query.stem,
                query.read_text(),
                place.tables,
                defined.read_text() if defined.exists() else None,
            )
        return found


class NexmarkCase:
    """A query of `examples/nexmark`, with few events."""

    def __init__(self, path: Path) -> None:
        self.name = f"nexmark {path.stem}"
        self._path = path
        self._events = test_queries.EVENTS.get(path.stem, test_queries.BIDS)

    def file(self) -> PipelineFile:
        events = self._events
        return PipelineFile(self._path, epoch_rows=events.epoch_rows, settings={"nexmark.source": events.source})

    @contextmanager
    def place(self) -> Iterator[Place]:
        tables = nexmark_tables(self._path.stem)
        with empty_folder() as path, settings(path):
            (path / "examples").symlink_to(ROOT / "examples")
            yield Place(path, tables)

    def problems(self, place: Place) -> list[str]:
        query = (ROOT / "tests" / "nexmark" / f"{self._path.stem}.sql").read_text()
        folder = place.folder / "out" / "nexmark" / self._path.stem
        return compare(folder, query, place.tables, test_queries.DEFINED.get(self._path.stem))


Case = GoldenCase | NexmarkCase

#: Stateless ones teach nothing that the others do not.
QUERIES = ("q3", "q4", "q5", "q6", "q7", "q8", "q9", "q11", "q15", "q16", "q18", "q19", "q20")


def cases() -> Mapping[str, Case]:
    golden = [GoldenCase(path) for path in test_golden.PIPELINES]
    nexmark = [NexmarkCase(path) for path in test_queries.QUERIES if path.stem in QUERIES]
    return {case.name: case for case in (*golden, *nexmark)}


def compare(folder: Path, query: str, tables: Tables, defined: str | None) -> list[str]:
    """How the rows in a folder differ from the answer; `defined` says what of them is the same in all runs."""
    expected = answer(query, tables)
    found: SignedRows = read_written(folder, expected.schema)
    if defined is not None:
        found = [(answer(defined, {"rows": rows}), sign) for rows, sign in found]
    left = differences(expected, found)
    return [f"{folder.name}: {len(left)} rows too many or too few, such as {left[:3]}"] if left else []


@lru_cache(maxsize=1)
def golden_input() -> tuple[Path, Tables]:
    folder = kept_folder() / "golden"
    folder.mkdir()
    tables = inputs.make_tables()
    inputs.write_tables(tables, folder)
    return folder, {name: without_zones(table) for name, table in tables.items()}


@lru_cache
def nexmark_tables(query: str) -> Tables:
    folder = kept_folder() / query
    folder.mkdir()
    with settings(folder):
        return make_events(test_queries.EVENTS.get(query, test_queries.BIDS).source, folder)


@lru_cache(maxsize=1)
def kept_folder() -> Path:
    """For as long as the process."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(empty_folder())


@contextmanager
def settings(folder: Path) -> Iterator[None]:
    """Where and how the tests of the same pipelines run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(arroyo_nexmark.source, "BATCH_ROWS", nexmark_place.BATCH_ROWS)
        patch.syspath_prepend(str(ROOT / "tests" / "golden" / "functions"))
        yield
