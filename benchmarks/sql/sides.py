"""The two sides of a query: its pipeline in YAML, and what its SQL compiles to, over the same files."""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arroyo_core.cli.main import main

from ..modules import ROOT
from ..nexmark.engine_arroyo import document_of
from ..nexmark.queries import QUERIES, Query
from ..nexmark.tasks import Task

YAML, SQL = "yaml", "sql"
SIDES = (YAML, SQL)
#: Those that are examples in both languages.
ASKED: Mapping[str, Query] = {name: query for name, query in QUERIES.items() if not name.endswith("e")}


@dataclass(frozen=True, slots=True)
class Compiled:
    """What a script compiles to, and how long that took."""

    text: str
    seconds: float


def compile_script(query: str) -> Compiled:
    """The example in SQL as YAML. The first of a process also pays for imports."""
    file = ROOT / "examples" / "nexmark" / "sql" / f"{query}.sql"
    printed = io.StringIO()
    start = time.perf_counter()
    with redirect_stdout(printed):
        code = main(["sql", "compile", str(file)])
    seconds = time.perf_counter() - start
    if code:
        raise ValueError(f"{file.name} does not compile")
    return Compiled(printed.getvalue(), seconds)


def documents(task: Task, compiled: str) -> dict[str, dict[str, Any]]:
    """The pipelines of both sides, as data: with files for the generator, and nothing else changed."""
    return {YAML: document_of(task), SQL: document_of(task, compiled)}


def task_of(query: str, *, data: Path, folder: Path, side: str) -> Task:
    return Task(case=query, data=str(data), answer=str(folder / side / "answer"), scratch=str(folder / side))
