"""The benchmark of topics works: a query over a real broker has the right answer, and a wrong one is noticed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from arroyo_kafka.broker import running_broker

from arroyo_core.errors import SetupError

from ..nexmark.answers import WrongAnswerError
from ..nexmark.dataset import prepare
from ..nexmark.results import Result, Results, Run
from . import topics
from .cases import BARE, CASES, ENGINES, OURS, PEER, Case
from .measuring import Measurer
from .page import Measured, document
from .tasks import TopicTiming

EVENTS = 4_000


@pytest.fixture(scope="module")
def measurer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measurer]:
    """Topics with a few thousand bids."""
    with ExitStack() as stack:
        try:
            broker = stack.enter_context(running_broker())
        except SetupError as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"no Kafka broker: {error}")
        dataset = prepare(tmp_path_factory.mktemp("data"), EVENTS)
        made = Measurer(servers=broker.bootstrap_servers, dataset=dataset, build=tmp_path_factory.mktemp("build"))
        made.fill()
        yield made


def case_of(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


@pytest.mark.parametrize(
    ("name", "engine"), [("q5_json", OURS), ("q1_topic_avro", OURS), ("decode_json", BARE), ("decode_avro", BARE)]
)
def test_an_engine_has_the_right_answer(measurer: Measurer, name: str, engine: str):
    found = measurer.measure_all([case_of(name)], [ENGINES[engine]], runs=1).get(engine, name)
    assert found is not None
    assert found.wrong == ""
    assert found.is_right


def test_a_row_too_many_in_the_answer_is_noticed(measurer: Measurer, tmp_path: Path):
    case = case_of("q1_topic_json")
    task = measurer.task(case, ENGINES[OURS], tmp_path)
    encode = topics.encoder("json")
    rows = [{**row, "price": row["price"] * 908 / 1000} for row in topics.bids(measurer.dataset)]
    timing = TopicTiming(job_s=1.0, epochs=1)
    topics.produce(measurer.servers, task.answer, map(encode, rows))
    measurer.check(case, task, timing, tmp_path / "right")
    topics.produce(measurer.servers, task.answer, map(encode, rows[:1]))
    with pytest.raises(WrongAnswerError, match="rows, not the"):
        measurer.check(case, task, timing, tmp_path / "wrong")


def test_a_row_too_few_into_nothing_and_another_sum_are_noticed(measurer: Measurer, tmp_path: Path):
    case = case_of("decode_json")
    task = measurer.task(case, ENGINES[BARE], tmp_path)
    timing = TopicTiming(job_s=1.0, epochs=1, rows=measurer.rows - 1)
    with pytest.raises(WrongAnswerError, match="rows, not"):
        measurer.check(case, task, timing, tmp_path)
    with pytest.raises(WrongAnswerError, match="sum of prices"):
        measurer.check(case, task, replace(timing, rows=measurer.rows, price_sum=1), tmp_path)


@pytest.mark.parametrize(("load", "is_busy"), [(0.1, False), (3.0, True)])
def test_the_page_says_which_targets_are_met_who_has_no_time_and_whether_others_ran(load: float, is_busy: bool):
    def result(engine: str, query: str, job_s: float, wrong: str = "") -> Result:
        return Result(engine=engine, query=query, events=1, rows=1000, runs=[Run(job_s=job_s, wrong=wrong)])

    results = Results(
        [
            result(OURS, "q1_json", 1.0),
            result(PEER, "q1_json", 6.0),
            result(BARE, "decode_json", 0.4),
            result(PEER, "q5_json", 0.0, "wrong: 3 rows"),
        ]
    )
    page = document(
        Measured(
            command="command", rows=1000, runs=1, load=load, results=results, latencies=[], sizes={"json": 200_000}
        )
    )
    peer = ENGINES[PEER].title
    assert f"| q1, currency conversion, into nothing, JSON: against {peer} | >= 5 times | 6.00 times | met |" in page
    assert "against bare loop, one process | >= 0.5 times | 0.40 times | missed |" in page
    assert f"- {peer}, q5_json: wrong: 3 rows" in page
    assert "200 bytes as JSON" in page
    assert ("Others were at work" in page) == is_busy
