"""How far the sources of a running job are behind, as its checkpoints tell it to others."""

from arroyo_core.cli.plan_changes import comparison_json, comparison_text
from arroyo_core.runtime.declarations import declare_operators
from arroyo_core.runtime.events import Committed
from arroyo_core.runtime.plan_changes import compare_plan
from arroyo_core.state.fork import ForkSource, find_checkpoint

NODES = [
    {"id": "rows", "operator": "test.rows", "config": {"count": 60, "batch": 3}},
    {"id": "out", "operator": "test.sink", "inputs": ["rows"]},
]
SLOW = {"parallelism": 2, "checkpoint": {"interval": "1h", "rows": 6}}


def compared(lab):
    found = find_checkpoint(ForkSource(url=lab.folder), job_id="lab", is_committed_only=False)
    plan = lab.plan(NODES, **SLOW)
    return found.origin, compare_plan(declare_operators(plan, lab.plugins), found.checkpoint)


def test_a_comparison_with_a_running_job_says_how_far_each_source_is_behind(lab):
    lab.run_until(lab.job(NODES, **SLOW), Committed, 2)
    origin, changes = compared(lab)
    rows, out = changes
    assert rows.backlog == 60 - len(lab.trace.numbers())
    assert 0 < rows.backlog < 60
    assert out.backlog == 0
    assert f"{rows.backlog:,} rows behind" in comparison_text(origin, changes, [])
    assert comparison_json(origin, changes, [])["nodes"][0]["backlog"] == rows.backlog


def test_a_job_that_has_read_all_is_not_behind(lab):
    lab.run(NODES, **SLOW)
    origin, changes = compared(lab)
    assert changes[0].backlog == 0
    assert "behind" not in comparison_text(origin, changes, [])
