"""Watermarks from one epoch to the next, through changes of the parallelism and of the format."""

import pytest

from arroyo_core.pipeline import plan_text
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.carried_chains import upgrade_carried
from arroyo_core.runtime.carry import NEW, OperatorLevels, carried_state, levels_message, levels_of, restore_carried
from arroyo_core.runtime.watermarks import Level

PIPELINE = """
name: carried
parallelism: {parallelism}
nodes:
  - {{id: rows, operator: test.rows}}
  - {{id: passing, operator: test.passing, inputs: [rows]}}
  - {{id: totals, operator: test.totals, inputs: [passing]}}
  - {{id: out, operator: test.sink, inputs: [totals]}}
"""


@pytest.fixture
def plan(lab):
    return lambda parallelism=2: plan_text(
        PIPELINE.format(parallelism=parallelism), plugins=lab.plugins, environment={}
    )


def report(subtask, **operators):
    items = [pb.OperatorReport(operator_id=name, levels=levels_message(each)) for name, each in operators.items()]
    return pb.ChainReport(subtask=subtask, operators=items)


def test_each_subtask_gets_its_own_levels_back(plan):
    first = OperatorLevels(Level(100), Level(90, is_idle=True))
    second = OperatorLevels(Level(300), Level(300), is_closed=True)
    state = carried_state([report(1, rows=second), report(0, rows=first)])
    assert restore_carried(plan(), state) == {"rows": [first, second]}


def test_subtasks_of_another_number_get_the_least_of_all(plan):
    state = carried_state(
        [
            report(0, rows=OperatorLevels(Level(100), Level(90)), out=OperatorLevels(Level(5, is_idle=True))),
            report(1, rows=OperatorLevels(Level(300), Level(40, is_idle=True)), out=OperatorLevels(Level(7))),
        ]
    )
    restored = restore_carried(plan(3), state)
    assert restored["rows"] == (OperatorLevels(Level(100, furthest_us=300), Level(90)),) * 3
    assert restored["out"] == (OperatorLevels(Level(7)),) * 3


@pytest.mark.parametrize(("parallelism", "furthest_us"), [(1, 300), (3, None)])
def test_where_others_have_been_counts_for_one_who_hears_of_all_of_them(plan, parallelism, furthest_us):
    """Behind a shuffle all senders are heard of; in a chain only one, unless there is only one."""
    ahead, behind = OperatorLevels(Level(300, is_idle=True)), OperatorLevels(Level(100))
    state = carried_state([report(0, passing=ahead, totals=ahead), report(1, passing=behind, totals=behind)])
    restored = restore_carried(plan(parallelism), state)
    assert {each.input for each in restored["totals"]} == {Level(100, furthest_us=300)}
    assert {each.input for each in restored["passing"]} == {Level(100, furthest_us=furthest_us)}


def test_an_operator_that_is_gone_is_forgotten_and_a_new_one_has_no_levels(plan):
    restored = restore_carried(plan(), carried_state([report(0, gone=OperatorLevels(Level(1)))]))
    assert restored == {}
    assert levels_of(restored, "rows", 1) == NEW


def former_state():
    """As it was written before levels were kept by operator."""
    state = pb.CarriedState()
    for subtask, time_us in enumerate((100, 300)):
        state.chains.add(head="rows", subtask=subtask, operators={"rows": time_us, "passing": time_us})
        least = pb.InputWatermark(is_present=True, event_time_us=100)
        state.chains.add(
            head="totals", subtask=subtask, inputs=[least], operators={"totals": 100, "out": 100}, is_closed=True
        )
    return state


def test_a_checkpoint_of_the_former_format_keeps_its_watermarks(plan):
    inputs = {"passing": ["rows"], "totals": ["passing"], "out": ["totals"]}
    restored = restore_carried(plan(), upgrade_carried(plan(), former_state(), inputs))
    assert [levels.output for levels in restored["rows"]] == [Level(100), Level(300)]
    assert restored["passing"] == [OperatorLevels(Level(time), Level(100)) for time in (100, 300)]
    assert restored["totals"] == [OperatorLevels(Level(100), Level(100), is_closed=True)] * 2
    assert restored["out"] == [OperatorLevels(Level(100), is_closed=True)] * 2


def test_a_changed_pipeline_takes_from_the_former_format_only_what_is_sure(plan):
    inputs = {"passing": ["rows"], "totals": ["other"], "out": ["totals"]}
    restored = restore_carried(plan(), upgrade_carried(plan(), former_state(), inputs))
    assert [levels.output for levels in restored["passing"]] == [Level(), Level()]


def test_levels_by_operator_are_left_as_they_are(plan):
    state = carried_state([report(0, rows=OperatorLevels(Level(1)))])
    assert upgrade_carried(plan(), state, {}) is state
