"""Ratios, means and the page: from results that are made up here, nothing is run."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest

from . import __main__ as main
from .chart import draw
from .engines import ENGINES
from .environments import requirements
from .processes import BenchError, run_tree
from .queries import COMPARED
from .report import document
from .results import Result, Results, Run, load, save
from .targets import best_peer, targets


def make(engine: str, query: str, *seconds: float, rows: int = 1000, peak_bytes: int = 2**20, wrong: str = ""):
    runs = tuple(Run(job_s=job_s, process_s=job_s + 5, cpu_s=job_s * 2, epochs=1) for job_s in seconds)
    watched = Run(job_s=99.0, peak_bytes=peak_bytes)
    if wrong:
        runs = (*runs, Run(wrong=wrong))
    about = {
        "cpu": "some processor",
        "cores": 2,
        "memory_gib": 8.0,
        "day": "2026-11-16",
        "python": "3.11.7",
        "java": "17",
        "commit": "abc",
        "versions": {engine: "1.0"},
    }
    return Result(engine=engine, query=query, events=rows, rows=rows, runs=runs, watched=watched, about=about)


def test_a_result_is_the_median_of_its_runs():
    found = make("arroyo", "q0", 4.0, 1.0, 2.0, rows=1000)
    assert (found.job_s, found.process_s, found.cpu_s) == (2.0, 7.0, 4.0)
    assert found.spread == (1.0, 4.0)
    assert found.rate == 500


def test_ratios_are_of_rates_and_so_independent_of_how_many_events_each_was_given():
    results = Results([make("arroyo", "q0", 1.0, rows=1000), make("bytewax", "q0", 1.0, rows=10)])
    assert results.ratio("arroyo", "bytewax", "q0") == 100
    assert results.ratio("arroyo", "flink", "q0") is None


def test_whole_processes_are_compared_only_on_as_many_events():
    results = Results(
        [
            make("arroyo", "q0", 5.0),
            make("polars", "q0", 0.0),
            make("bytewax", "q0", 0.0, rows=10),
        ]
    )
    assert results.process_mean("arroyo", "polars", ["q0", "q1"]) == (0.5, 1)
    assert results.process_mean("arroyo", "bytewax", ["q0"]) is None


def test_the_geometric_mean_tells_of_how_many_queries_it_is():
    results = Results(
        [
            make("arroyo", "q0", 1.0),
            make("arroyo", "q1", 1.0),
            make("arroyo", "q2", 1.0),
            make("duckdb", "q0", 2.0),
            make("duckdb", "q1", 8.0),
        ]
    )
    mean, count = results.geometric_mean("arroyo", "duckdb", ["q0", "q1", "q2"])
    assert (round(mean, 9), count) == (4.0, 2)
    assert results.geometric_mean("arroyo", "polars", ["q0"]) is None


def test_one_wrong_run_makes_the_result_wrong():
    found = make("flink", "q5", 1.0, 1.0, wrong="wrong: 3 rows, not the 4 that are right")
    assert not found.is_right
    results = Results([found, make("arroyo_csv", "q5", 1.0), make("arroyo", "q5", 1.0)])
    assert results.ratio("arroyo_csv", "flink", "q5") is None
    page = document(results, {}, "")
    assert "3 rows, not the 4 that are right" in page
    assert any(line.startswith("| PyFlink Table API |") and "| wrong |" in line for line in page.splitlines())


def test_an_engine_that_is_not_installed_is_reported():
    result = Result(engine="pathway", query="q0", events=1, missing="no wheel for this Python")
    page = document(Results([result, make("arroyo", "q0", 1.0)]), {}, "")
    assert "Pathway, q0: not installed: no wheel for this Python" in page
    assert "not installed |" in page


def test_the_page_is_kept_only_once_ours_has_been_measured_in_full():
    full = [make("arroyo", query, 1.0, 1.0, 1.0, rows=main.DEFAULT_EVENTS) for query in COMPARED]
    small = make("arroyo", COMPARED[0], 1.0, 1.0, 1.0, rows=1000)
    once = make("arroyo", COMPARED[0], 1.0, rows=main.DEFAULT_EVENTS)
    assert main.is_complete(Results(full))
    assert not main.is_complete(Results(full[1:]))
    assert not main.is_complete(Results([*full[1:], small]))
    assert not main.is_complete(Results([*full[1:], once]))


def test_results_accumulate_and_a_new_one_replaces_the_old(tmp_path: Path):
    save(tmp_path, make("arroyo", "q0", 9.0))
    save(tmp_path, make("arroyo", "q1", 2.0))
    save(tmp_path, make("arroyo", "q0", 1.0, 3.0))
    found = load(tmp_path)
    assert {(result.query, len(result.runs)) for result in found} == {("q0", 2), ("q1", 1)}
    assert found.get("arroyo", "q0") == make("arroyo", "q0", 1.0, 3.0)


def test_targets_are_met_missed_or_not_measured():
    results = Results(
        [
            make("arroyo", "q0", 1.0, peak_bytes=4),
            make("structured_streaming", "q0", 7.0, peak_bytes=10),
            make("polars", "q0", 0.1),
        ]
    )
    seconds = {"small": {"epoch": [0.1], "Structured Streaming": [0.2]}, "startup": {"ours": [9.0], "bare": [7.5]}}
    found = targets(results, seconds)
    assert [target.is_met for target in found] == [True, None, None, None, True, False, True, None, True, False]
    assert found[0].found == "7.00 times (of 1 queries)"
    assert found[-1].found == "1.50 s"


def test_the_best_peer_is_the_one_that_is_hardest_to_beat():
    results = Results(
        [
            make("arroyo", "q0", 1.0),
            make("arroyo_csv", "q0", 4.0),
            make("structured_streaming", "q0", 3.0),
            make("flink", "q0", 8.0),
            make("duckdb", "q0", 0.1),
        ]
    )
    assert best_peer(results, "q0") == ("flink", 2.0)


def test_the_chart_is_well_formed_and_shows_every_rate():
    rates = {"q0": {"arroyo": 2e6, "duckdb": 3.3e7}, "q5": {"arroyo": 9e5}}
    picture = draw(
        rates, {"arroyo": "Arroyo & Spark", "duckdb": "DuckDB", "flink": "Flink"}, ["arroyo", "duckdb", "flink"]
    )
    root = ElementTree.fromstring(picture)
    names = [element.tag.rpartition("}")[2] for element in root]
    # One more of each in the legend.
    assert (names.count("polygon"), names.count("circle")) == (3, 2)
    assert "Flink" not in picture


def test_the_tree_of_a_process_is_measured_whole(tmp_path: Path):
    """The work is done by a grandchild whose parent does not wait for it."""
    # It stays for some looks at the tree, one every 0.2 s.
    grandchild = "import time; data = bytearray(80 << 20); [None for _ in range(3 * 10**6)]; time.sleep(0.8)"
    child = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {grandchild!r}])"
    usage = run_tree([sys.executable, "-c", child], folder=tmp_path, looks_at_memory=True)
    assert usage.peak_bytes > 80 << 20
    assert usage.cpu_s > 0.02


def test_a_process_that_fails_says_why(tmp_path: Path):
    with pytest.raises(BenchError, match="no such wheel"):
        run_tree([sys.executable, "-c", "raise SystemExit('no such wheel')"], folder=tmp_path)


def test_a_process_that_takes_too_long_is_ended(tmp_path: Path):
    with pytest.raises(BenchError, match="exit code -9"):
        run_tree([sys.executable, "-c", "import time; time.sleep(60)"], folder=tmp_path, timeout_s=1.0)


def test_every_engine_can_be_installed_and_run():
    for engine in ENGINES.values():
        assert requirements(engine.environment).exists()
        assert find_spec(engine.module) is not None
        assert set(COMPARED) <= set(engine.queries)
