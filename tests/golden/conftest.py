"""Where the golden pipelines run: a folder in memory that has their input, and no warm cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..lives.answers import Tables, without_zones
from ..lives.places import empty_folder
from .inputs import make_tables, write_tables


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Tables]:
    """The folder of the input, and its tables for DuckDB."""
    folder = tmp_path_factory.mktemp("in")
    tables = make_tables()
    write_tables(tables, folder)
    return folder, {name: without_zones(table) for name, table in tables.items()}


@pytest.fixture
def tables(written: tuple[Path, Tables]) -> Tables:
    return written[1]


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, written: tuple[Path, Tables]) -> Iterator[Path]:
    """The current folder, with the input as `in`."""
    with empty_folder() as path:
        (path / "in").symlink_to(written[0])
        monkeypatch.chdir(path)
        yield path


@pytest.fixture(autouse=True)
def _functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "functions"))
