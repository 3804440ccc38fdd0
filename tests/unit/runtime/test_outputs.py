"""Side outputs, and operators in front of a shuffle."""

from collections import Counter

import pytest

from arroyo_core.errors import InvalidPipelineError, OperatorError
from arroyo_core.pipeline.plan import Routing

EVERY = {"checkpoint": {"interval": "1h", "rows": 4}}


def sieve(*, reads, width=1, **config):
    return [
        {"id": "in", "operator": "test.rows", "config": {"count": 20}},
        {"id": "sieve", "operator": "test.sieve", "inputs": ["in"], "config": config},
        {"id": "even", "operator": "test.sink", "inputs": ["sieve"]},
        {"id": "odd", "operator": "test.sink", "inputs": [reads], "parallelism": width},
    ]


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("width", [1, 3])
def test_a_side_output_is_read_by_name(lab, parallelism, width):
    result = lab.run(sieve(reads="sieve.odd", width=width), parallelism=parallelism, **EVERY)
    assert result.operators["even"].rows_received == 10
    assert result.operators["odd"].rows_received == 10
    assert lab.trace.numbers() == Counter(range(20))


def test_rows_of_a_side_output_that_nobody_reads_go_nowhere(lab):
    lab.run(sieve(reads="sieve"), **EVERY)
    assert lab.trace.numbers() == Counter(dict.fromkeys(range(0, 20, 2), 2))


def test_an_unknown_side_output_is_a_mistake_with_a_suggestion(lab):
    with pytest.raises(InvalidPipelineError, match=r"no output 'od'.*did you mean 'sieve.odd'"):
        lab.plan(sieve(reads="sieve.od"))


def test_the_main_output_must_be_read_too(lab):
    nodes = [node for node in sieve(reads="sieve.odd") if node["id"] != "even"]
    with pytest.raises(InvalidPipelineError, match="nothing reads the output of 'sieve'"):
        lab.plan(nodes)


def test_an_operator_that_emits_to_an_output_it_has_not_declared_is_named(lab):
    with pytest.raises(OperatorError, match=r"'sieve'.*'lost', which is none"):
        lab.run(sieve(reads="sieve.odd", to="lost"))


SUMS = [
    {"id": "in", "operator": "test.rows", "config": {"count": 50}},
    {"id": "sums", "operator": "test.sums", "inputs": ["in"]},
    {"id": "out", "operator": "test.sink", "inputs": ["sums"]},
]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_rows_are_added_up_before_the_shuffle(lab, parallelism):
    result = lab.run(SUMS, parallelism=parallelism, **EVERY)
    assert {row["key"]: row["sum"] for row in lab.trace.rows} == {key: sum(range(key, 50, 5)) for key in range(5)}
    assert result.operators["sums:partial"].rows_received == 50
    assert result.operators["sums"].rows_received == result.operators["sums:partial"].rows_sent


def test_the_partial_operator_shares_the_task_of_the_input(lab):
    plan = lab.plan(SUMS, parallelism=2)
    assert plan.chains[0].nodes == ("in", "sums:partial")
    assert [edge.routing for edge in plan.inputs_of("sums")] == [Routing.SHUFFLE]
    assert plan.nodes["sums"].input_schemas[0].names == ["key", "sum"]


def test_rows_that_are_not_shuffled_are_not_added_up_before(lab):
    keyed = {"id": "again", "operator": "test.sums", "inputs": ["sums"]}
    nodes = [*SUMS[:2], keyed, {"id": "out", "operator": "test.sink", "inputs": ["again"]}]
    plan = lab.plan(nodes, parallelism=2)
    assert list(plan.nodes) == ["in", "sums:partial", "sums", "again", "out"]
