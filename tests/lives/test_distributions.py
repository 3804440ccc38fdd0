"""Distributions of others, found by their entry points in processes of their own: killed half-way, they go on.

One adds a type of tables. The others are what docs/write-a-plugin.md, write-a-source.md and write-a-sink.md showed at
commit 7f83139, to the letter: they must work for as long as this version lives, with warnings.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from .answers import read_parquet

ROOT = Path(__file__).parents[2]
COUNTERS = ROOT / "tests/unit/state/support/counters_plugin"
FORMER = Path(__file__).parent / "former_plugin"

TALLY = """
name: tally
checkpoint: {url: state, interval: 1h, rows: 50}
nodes:
  - {id: numbers, operator: impulse.source, config: {count: 600}}
  - {id: tally, operator: acme.tally, inputs: [numbers]}
  - {id: out, operator: filesystem.sink, inputs: [tally], config: {path: out, format: parquet}}
"""

ACME = """
name: acme
parallelism: 2
checkpoint: {url: state, interval: 1h, rows: 10}
nodes:
  - {id: lines, operator: acme.lines, config: {folder: logs}}
  - {id: counted, operator: acme.running_count, inputs: [lines]}
  - {id: events, operator: acme.sqlite, inputs: [counted], config: {path: events.db}}
  - {id: words, operator: std.project, inputs: [counted], config: {expressions: {word: file, line: line}}}
  - {id: latest, operator: acme.latest, inputs: [words], config: {path: latest.db}}
"""


def call(site: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python, where the distributions of `site` are installed; every warning but deprecations is an error."""
    command = [sys.executable, "-W", "error", "-W", "default::DeprecationWarning", *arguments]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def live(site: Path, folder: Path, *, epochs: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run `pipeline.yaml` in the folder, until so many more epochs are published or to its end."""
    # Last on the path: where the core is installed from a wheel, that is the one that is tested.
    code = (
        f"import sys; sys.path.append({str(ROOT)!r}); from tests.lives.former import run; print(run(epochs={epochs}))"
    )
    done = call(site, folder, "-c", code)
    assert ("is_finished=True" in done.stdout) == (epochs is None)
    return done


@pytest.fixture
def tally(tmp_path):
    (tmp_path / "pipeline.yaml").write_text(TALLY)
    return tmp_path


def test_a_table_type_of_another_distribution_lives_in_a_pipeline(tally):
    live(COUNTERS, tally, epochs=4)
    before = read_parquet(tally / "out").num_rows
    live(COUNTERS, tally, epochs=3)
    assert 0 < before < read_parquet(tally / "out").num_rows < 600
    live(COUNTERS, tally)
    numbers: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for row in read_parquet(tally / "out").to_pylist():
        numbers[row["remainder"]].append(row["number"])
    assert {key: sorted(found) for key, found in numbers.items()} == {key: list(range(1, 201)) for key in range(3)}


def test_commands_show_what_a_table_of_another_distribution_holds(tally):
    live(COUNTERS, tally, epochs=4)
    tables = call(COUNTERS, tally, "-m", "arroyo_core", "state", "tables", "state", "--format", "json").stdout
    assert '"counters"' in tables
    rows = call(COUNTERS, tally, "-m", "arroyo_core", "state", "cat", "state", "tally.seen", "--format", "json").stdout
    counts = [json.loads(line) for line in rows.splitlines()]
    assert [row["key"] for row in counts] == [0, 1, 2]
    assert sum(row["count"] for row in counts) == 4 * 50


@pytest.mark.parametrize("page", ["plugin", "source", "sink"])
def test_what_a_page_of_before_shows_still_works(tmp_path, page):
    done = call(FORMER, tmp_path, str(FORMER / f"try_{page}.py"))
    assert "arroyo_core.testing has moved: import arroyo_testing instead" in done.stderr
    found = re.findall(r"(\w+Warning): (.*)", done.stderr)
    assert {kind for kind, _ in found} == {"DeprecationWarning"}


def test_a_pipeline_of_plugins_of_before_goes_on_after_a_crash(tmp_path):
    (tmp_path / "pipeline.yaml").write_text(ACME)
    (tmp_path / "logs").mkdir()
    for name in "ab":
        (tmp_path / f"logs/{name}.log").write_text("".join(f"{name}{number}\n" for number in range(40)))
    first = live(FORMER, tmp_path, epochs=3)
    assert "RunningCount.tables(self) is deprecated" in first.stderr
    before = rows_of(tmp_path / "events.db", "events")
    live(FORMER, tmp_path)
    found = rows_of(tmp_path / "events.db", "events")
    assert 0 < len(before) < len(found)
    assert Counter(row["line"] for row in found) == Counter(f"{name}{number}" for name in "ab" for number in range(40))
    latest = {row["word"]: row["line"] for row in rows_of(tmp_path / "latest.db", "latest")}
    assert latest == {"a.log": "a39", "b.log": "b39"}


def rows_of(path: Path, table: str) -> list[dict[str, str]]:
    with closing(sqlite3.connect(path)) as database:
        return [json.loads(row) for (row,) in database.execute(f"select row from {table}")]
