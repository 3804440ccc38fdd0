"""Targets, readers of outputs and the page, from results that are made up here; two loops are run on little data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ..epochs import live_shown
from ..modules import ENVIRONMENT, module_command
from ..nexmark.answers import Answers
from ..nexmark.dataset import prepare
from ..nexmark.engines import OURS_LIVE
from ..nexmark.queries import AVERAGED, QUERIES
from ..nexmark.results import Result, Results, Run
from ..nexmark.tasks import Task, Timing
from .found import LARGE_QUERIES, PAIR, Found
from .latency import PEERS, flink_commits, lines, spark_commits
from .page import document
from .targets import targets

ABOUT = {
    "cpu": "some processor",
    "cores": 2,
    "memory_gib": 8.0,
    "day": "2026-11-18",
    "python": "3.11.7",
    "java": "17",
    "commit": "abc",
}


def result(engine: str, query: str, job_s: float, *, events: int = 100, wrong: str = "") -> Result:
    about = {**ABOUT, "versions": {engine: "1.0"}}
    runs = [Run(job_s=job_s, wrong=wrong)]
    return Result(engine=engine, query=query, events=events, rows=1000, runs=runs, about=about)


def make(**values) -> Found:
    found = {
        "cases": {},
        "latencies": {},
        "realtime": {},
        "queries": Results(),
        "large": Results(),
        "abouts": [],
        "now": ABOUT,
    }
    return Found(**{**found, **values})


CASES = {
    "live_empty": {"empty epoch": [0.002], "bare Spark job": [0.04]},
    "live_small": {"epoch": [0.02], "Structured Streaming": [0.1]},
    "live_latency": {
        "an epoch every 50ms: half of the rows within": [0.02],
        "an epoch every 50ms: 99 of 100 within": [0.05],
        "an epoch every 25ms: half of the rows within": [0.02],
        "an epoch every 25ms: 99 of 100 within": [0.07],
    },
    "live_shown": {
        "an epoch every 5s: half of the rows within": [0.003],
        "an epoch every 5s: 99 of 100 within": [0.011],
    },
    "live_cores": {"two cores": [1.0], "one core": [2.0]},
    "live_restart": {"from kill -9 of a worker to the next commit": [0.9, 1.5, 0.8]},
}


def test_every_target_is_met_missed_or_not_measured():
    assert [target.is_met for target in targets(make())] == [None] * 10
    queries = Results([result(OURS_LIVE, "q11", 2.0), result("polars", "q11", 1.0)])
    large = Results([result(OURS_LIVE, "q11", 8.0), result(OURS_LIVE, "q2", 1.0), result(PAIR.name, "q2", 0.9)])
    found = targets(make(cases=CASES, queries=queries, large=large))
    assert [target.is_met for target in found] == [True, False, True, False, False, True, True, None, True, True]
    assert found[2].found == "50.0 ms (an epoch every 50ms)"
    assert found[4].found == "0.50 times (of 1 queries)"
    assert found[9].found == "4.00 (8.00 s, 2.00 s)"


def test_the_page_shows_what_failed_and_why():
    found = make(
        cases=CASES,
        latencies={
            "flink_shown": {"wrong": "no Java here"},
            "flink_committed": {"p50_s": 0.2, "p99_s": 0.5, "rows": 9},
        },
        realtime={"files": "[STREAMING_REAL_TIME_MODE] not this one"},
        queries=Results([result(OURS_LIVE, "q5", 1.0), result("flink", "q5", 0.0, wrong="wrong: 3 rows")]),
    )
    page = document(found)
    assert "| its committed row in files | PyFlink Table API | 200.0 ms | 500.0 ms |" in page
    assert "| its line on the standard output | PyFlink Table API | - | - |" in page
    assert "- flink shown: no Java here" in page
    assert "- PyFlink Table API, q5: wrong: 3 rows" in page
    assert "`[STREAMING_REAL_TIME_MODE] not this one`" in page
    assert "2026-11-18; 2 cores (some processor)" in page
    assert "Others were at work" not in page


def test_the_page_says_where_others_were_at_work():
    page = document(make(abouts=[ABOUT | {"load": 2.0}, ABOUT | {"load": 30.0}]))
    assert "**Others were at work** during 1 of 2 measurements (load up to 30)." in page


def test_the_page_is_kept_only_when_all_was_measured_on_all_rows():
    def results(queries, events):
        return Results(
            [result(engine, query, 1.0, events=events) for engine in (OURS_LIVE, "polars") for query in queries]
        )

    whole = {"cases": CASES, "latencies": {"flink_shown": {}}, "queries": results(AVERAGED, 10)}
    assert make(**whole, large=results(LARGE_QUERIES, 40)).is_whole(list(CASES), 10, 40)
    assert not make(**whole, large=results(LARGE_QUERIES, 39)).is_whole(list(CASES), 10, 40)
    assert not make(**whole, large=results(LARGE_QUERIES[1:], 40)).is_whole(list(CASES), 10, 40)
    assert not make(**whole, large=results(LARGE_QUERIES, 40)).is_whole([*CASES, "live_more"], 10, 40)


def test_a_line_is_seen_with_the_piece_that_has_its_end():
    flink = [(5.0, b"1> +I[0, 1970-01-01T00:00:01]\n2> +I[1, 1970-"), (6.0, b"01-01T00:00:02.500]\n")]
    assert list(lines(PEERS["flink"], flink)) == [(0, 1.0, 5.0), (1, 2.5, 6.0)]
    spark = [(5.0, b"+-----+\n|counter|made_us|\n|0      |1000000|\n|1     "), (6.0, b" |2500000|\n+---+\n")]
    assert list(lines(PEERS["structured_streaming"], spark)) == [(0, 1.0, 5.0), (1, 2.5, 6.0)]


def test_lines_of_ours_count_from_when_they_were_made_and_must_be_whole():
    text = "".join(
        json.dumps({"counter": number, "timestamp": f"1970-01-01T00:00:0{number}Z"}) + "\n" for number in range(4)
    ).encode()
    pieces = [(2.0, text[:90]), (7.0, text[90:])]
    waits_s = live_shown.latencies_s(pieces, rows=4, warm_up_s=1)
    assert np.array_equal(waits_s, [6.0, 5.0, 4.0])
    with pytest.raises(RuntimeError, match="not each of 5 rows once"):
        live_shown.latencies_s(pieces, rows=5, warm_up_s=1)


def test_files_count_from_their_commit(tmp_path: Path):
    (tmp_path / "part-0").write_text('0,"1970-01-01 00:00:01"\n1,"1970-01-01 00:00:02.5"\n')
    (tmp_path / ".part-1.inprogress").write_text("2,not yet\n")
    renamed_s = (tmp_path / "part-0").stat().st_ctime
    assert list(flink_commits(tmp_path)) == [(0, 1.0, renamed_s), (1, 2.5, renamed_s)]


def test_a_file_of_spark_counts_from_the_first_log_that_names_it(tmp_path: Path):
    pq.write_table(pa.table({"counter": [0], "made_us": [1_000_000]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"counter": [1], "made_us": [2_500_000]}), tmp_path / "b.parquet")
    logs = tmp_path / "_spark_metadata"
    logs.mkdir()
    for name, files in (("8", ["a"]), ("9.compact", ["a", "b"]), ("10", [])):
        paths = [json.dumps({"path": f"file://{tmp_path}/{file}.parquet"}) for file in files]
        (logs / name).write_text("\n".join(["v1", *paths]))
    first_s, second_s = ((logs / name).stat().st_ctime for name in ("8", "9.compact"))
    assert list(spark_commits(tmp_path)) == [(0, 1.0, first_s), (1, 2.5, second_s)]


def test_two_loops_answer_together(tmp_path: Path):
    dataset = prepare(tmp_path / "data", 20_000)
    (tmp_path / "scratch").mkdir()
    task = Task(case="q2", data=str(dataset.folder), answer=str(tmp_path / "answer"), scratch=str(tmp_path / "scratch"))
    task.write(tmp_path / "task.json")
    command = module_command(PAIR.module, tmp_path / "task.json", tmp_path / "timing.json", python=sys.executable)
    subprocess.run(command, env=os.environ | ENVIRONMENT, check=True)
    found = Answers(dataset).check(QUERIES["q2"], tmp_path / "answer", Timing.read(tmp_path / "timing.json"))
    assert found.rows > 0
    assert len(list((tmp_path / "answer").glob("*/*.parquet"))) == 2
