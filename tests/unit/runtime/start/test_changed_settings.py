"""A pipeline whose settings would misread its state does not start from it, until a person allows that."""

import json
from contextlib import closing

import pyarrow.parquet as pq
import pytest
from arroyo_testing.lanes import InlineLanes

from arroyo_core.errors import Domain, error_domain
from arroyo_core.pipeline import plan_text
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.events import Committed, Published
from arroyo_core.runtime.former_ids import NODES
from arroyo_core.runtime.job import Job
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.plan_changes import recorded_nodes
from arroyo_core.runtime.start import StartError, StartOptions, check_start
from arroyo_core.state import ParquetBackend, get_storage_provider
from arroyo_core.state.failures import IncompatibleCheckpointError
from arroyo_core.state.fork import ForkSource

SOURCE = "event_time_interval: 1s, count: 3000"
COUNT = "aggregates: [{function: count, as: n}]"


class Changing:
    """Runs a pipeline `numbers -> at -> node -> out` whose settings change between runs."""

    def __init__(self, folder):
        self.folder = folder
        self.plugins = installed_plugins()

    def plan(self, operator, config, *, name="job", source=SOURCE, out="out", environment=None):
        inputs = "[at, other]" if operator.endswith("join") else "[at]"
        text = f"""\
name: {name}
checkpoint: {{interval: 1h, rows: 500}}
nodes:
  - {{id: numbers, operator: impulse.source, config: {{{source}}}}}
  - {{id: at, operator: std.watermark, inputs: [numbers], config: {{max_lateness: 0s}}}}
  - {{id: other, operator: std.project, inputs: [at], config: {{keep: [counter, timestamp]}}}}
  - {{id: node, operator: {operator}, inputs: {inputs}, config: {{{config}}}}}
  - {{id: out, operator: filesystem.sink, inputs: [node], config: {{path: "{self.folder / out}", updating: keep_meta}}}}
  - {{id: nothing, operator: std.blackhole, inputs: [other]}}
"""
        return plan_text(text, plugins=self.plugins, environment=environment or {})

    def job(self, plan, options=None):
        return Job(
            plan,
            LocalExecutor(self.plugins),
            plugins=self.plugins,
            storage_url=str(self.folder / "state"),
            lanes=InlineLanes(),
            start=options,
        )

    def kill(self, plan, kind=Committed, epoch=2, options=None):
        with closing(self.job(plan, options)) as job:
            job.begin()
            while True:
                event = job.step()
                if isinstance(event, kind) and event.epoch == epoch:
                    return

    def check(self, plan, options=None):
        return check_start(self.backend(plan.job_id), plan, self.plugins, options or StartOptions())

    def backend(self, name="job"):
        return ParquetBackend(get_storage_provider(str(self.folder / "state")), name)

    def rows(self, out="out"):
        found = [row for path in sorted((self.folder / out).glob("part-*")) for row in pq.read_table(path).to_pylist()]
        return [{name: value for name, value in row.items() if name != "_updating_meta"} for row in found]


@pytest.fixture
def changing(tmp_path):
    return Changing(tmp_path)


def refusal(operator, change, *, epoch=2):
    return (
        f"settings are not those of job 'job' at epoch {epoch}, and state would be misread:\n"
        f"  node ({operator}), changed: {change}\n"
        "go back to the old settings, or go on with the state as it is with --allow-change node"
    )


@pytest.mark.parametrize(
    ("operator", "before", "after", "change"),
    [
        ("std.sliding_window", "size: 20s, slide: 5s", "size: 20s, slide: 10s", "slide 5s -> 10s"),
        ("std.sliding_window", "size: 20s, slide: 5s", "size: 40s, slide: 5s", "size 20s -> 40s"),
        ("std.tumbling_window", "size: 5m", "size: 10m", "size 5m -> 10m"),
        ("std.tumbling_window", "size: 1h", "size: 2h", "size 1h -> 2h"),
        ("std.tumbling_window", "size: 5m", "size: 5m, offset: 3s", "offset 0s -> 3s"),
        ("std.tumbling_window", "size: 5m", "size: 10m, offset: 3s", "size 5m -> 10m; offset 0s -> 3s"),
        ("std.tumbling_window", "size: 5m", "size: 5m, early: 1s", "early results not sent -> sent"),
        ("std.session_window", "gap: 5s", "gap: 1m", "gap 5s -> 1m"),
        (
            "std.updating_aggregate",
            "aggregates: [{function: max, column: counter, as: most}]",
            "aggregates: [{function: max, column: subtask_index, as: most}]",
            "aggregates max(counter) as most -> max(subtask_index) as most",
        ),
        ("std.window_join", "on: [{left: counter}], size: 5m", "on: [{left: counter}], size: 10m", "size 5m -> 10m"),
        (
            "std.interval_join",
            "on: [{left: counter}], lower: -5s, upper: 1m",
            "on: [{left: counter}], lower: -5s, upper: 2m",
            "upper 1m -> 2m",
        ),
        (
            "std.asof_join",
            "on: [{left: counter}], tolerance: 5s",
            "on: [{left: counter}], tolerance: 5s, direction: forward",
            "direction backward -> forward",
        ),
        ("std.top_n", "n: 3, order_by: [{column: counter}]", "n: 5, order_by: [{column: counter}]", "n 3 -> 5"),
    ],
)
def test_settings_that_would_misread_state_are_refused(changing, operator, before, after, change):
    windowed = f", {COUNT}" if "window" in operator and "join" not in operator else ""
    changing.kill(changing.plan(operator, before + windowed))
    changed = changing.plan(operator, after + windowed)
    with pytest.raises(IncompatibleCheckpointError) as caught:
        changing.job(changed).run()
    assert str(caught.value) == refusal(operator, change)
    assert error_domain(caught.value) is Domain.USER
    with pytest.raises(IncompatibleCheckpointError, match="state would be misread"):
        changing.check(changed)
    assert changing.backend().list_epochs() == [1, 2]
    # The settings that it has are no change.
    assert changing.check(changing.plan(operator, before + windowed)).warnings == ()


@pytest.mark.parametrize(
    ("operator", "before", "after"),
    [
        ("std.tumbling_window", f"size: 60m, {COUNT}", f"size: 1h, {COUNT}"),
        ("std.tumbling_window", f"size: 5m, {COUNT}", f"size: 300s, offset: 10m, late: side_output, {COUNT}"),
        ("std.deduplicate", "keys: [counter], ttl: 1h", "keys: [counter], ttl: 2h"),
        ("std.join", "on: [{left: counter}], ttl: 1h", "on: [{left: counter}], ttl: 2h"),
    ],
)
def test_the_same_written_otherwise_and_what_state_does_not_depend_on_may_change(changing, operator, before, after):
    changing.kill(changing.plan(operator, before))
    assert changing.check(changing.plan(operator, after)).warnings == ()


ALLOW = StartOptions(allow_changes=frozenset({"node"}))


def test_an_allowed_change_goes_on_with_the_state_as_it_is(changing):
    """What the documentation says of it: windows that were open begin where they did, and end by the new size."""
    # 500 rows to an epoch, one a second: at its end a window of 5 m from 15:00 is open.
    changing.kill(changing.plan("std.tumbling_window", f"size: 5m, {COUNT}"))
    changed = changing.plan("std.tumbling_window", f"size: 10m, {COUNT}")
    assert changing.check(changed, ALLOW).warnings == (
        "state is used as it is: node (std.tumbling_window), changed: size 5m -> 10m",
    )
    changing.job(changed, ALLOW).run()
    found = [
        (row["window_start"].timestamp(), row["window_end"].timestamp(), row["n"])
        for row in changing.rows()
        if row["window_start"].timestamp() >= 600
    ]
    # Off the grid, with the rows of before; the window of the new grid beside it has those that came since.
    assert (900.0, 1500.0, 100) in found
    assert (600.0, 1200.0, 200) in found
    assert found[-1] == (2400.0, 3000.0, 600)
    assert sum(n for _, _, n in found) == 3000 - 600


def test_a_change_is_allowed_once_and_stays_on_record(changing):
    before, after = (changing.plan("std.tumbling_window", f"size: {size}, {COUNT}") for size in ("5m", "10m"))
    changing.kill(before)
    changing.kill(after, epoch=3, options=ALLOW)
    # From the first epoch on, the pipeline and its checkpoint agree.
    assert changing.check(after).warnings == ()
    with pytest.raises(IncompatibleCheckpointError, match="changed: size 10m -> 5m"):
        changing.check(before)
    # Going back compares with what held then.
    assert "size" not in "".join(changing.check(before, StartOptions(from_epoch=2)).warnings)
    with pytest.raises(IncompatibleCheckpointError, match="changed: size 5m -> 10m"):
        changing.check(after, StartOptions(from_epoch=2))
    events = [
        json.loads(line)
        for path in sorted((changing.folder / "state").rglob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    (noted,) = [event for event in events if event.get("event") == "SettingChangeAllowed"]
    assert {"node": "node", "label": "size", "before": "5m", "after": "10m"}.items() <= noted.items()


def test_a_checkpoint_from_before_settings_were_recorded_starts_as_it_did(changing, monkeypatch):
    before, after = (changing.plan("std.tumbling_window", f"size: {size}, {COUNT}") for size in ("5m", "10m"))
    with monkeypatch.context() as patch:
        patch.setattr("arroyo_core.runtime.plan_changes.record_settings", lambda settings: {})
        changing.kill(before)
    assert changing.check(after).warnings == ()
    # From its next epoch on it has them.
    changing.kill(before, epoch=3)
    with pytest.raises(IncompatibleCheckpointError, match="changed: size 5m -> 10m"):
        changing.check(after)


def test_a_fork_is_compared_with_the_job_it_comes_from(changing):
    changing.kill(changing.plan("std.tumbling_window", f"size: 5m, {COUNT}"))
    # Another place to write to is not a change of state.
    trial = changing.plan("std.tumbling_window", f"size: 10m, {COUNT}", name="trial", out="trial")
    source = ForkSource(url=str(changing.folder / "state"), job_id="job")
    with pytest.raises(IncompatibleCheckpointError, match="changed: size 5m -> 10m"):
        changing.check(trial, StartOptions(fork_from=source))
    changing.job(trial, StartOptions(fork_from=source, allow_changes=frozenset({"node"}))).run()
    assert changing.rows("trial")


def test_a_node_that_is_not_there_cannot_be_allowed(changing):
    plan = changing.plan("std.tumbling_window", f"size: 5m, {COUNT}")
    options = StartOptions(allow_changes=frozenset({"nodes"}))
    expected = r"--allow-change nodes: the pipeline has no such node \(nodes: numbers, at, other, node, out, nothing\)"
    with pytest.raises(StartError, match=expected):
        changing.check(plan, options)
    changing.kill(plan)
    with pytest.raises(StartError, match=expected):
        changing.check(plan, options)


def test_every_node_is_named(changing):
    changing.kill(changing.plan("std.tumbling_window", f"size: 5m, {COUNT}"))
    changed = changing.plan("std.tumbling_window", f"size: 10m, {COUNT}", source="event_time_interval: 2s, count: 3000")
    with pytest.raises(IncompatibleCheckpointError) as caught:
        changing.check(changed)
    assert (
        "  numbers (impulse.source), changed: event_time_interval 1s -> 2s\n"
        "  node (std.tumbling_window), changed: size 5m -> 10m\n"
    ) in str(caught.value)
    assert str(caught.value).endswith("with --allow-change numbers --allow-change node")
    with pytest.raises(IncompatibleCheckpointError, match=r"with --allow-change numbers$"):
        changing.check(changed, ALLOW)


def test_a_source_may_go_further_and_faster(changing):
    changing.kill(changing.plan("std.tumbling_window", f"size: 5m, {COUNT}"))
    more = changing.plan(
        "std.tumbling_window", f"size: 5m, {COUNT}", source="event_time_interval: 1s, count: 9000, rate: 1000000"
    )
    assert changing.check(more).warnings == ()


def test_values_of_the_environment_are_compared_and_never_shown(changing):
    def plan(size):
        return changing.plan("std.tumbling_window", f'size: "${{SIZE}}", {COUNT}', environment={"SIZE": size})

    changing.kill(plan("3601s"))
    assert changing.check(plan("3601s")).warnings == ()
    with pytest.raises(IncompatibleCheckpointError) as caught:
        changing.check(plan("7201s"))
    assert "changed: size ${SIZE} -> ${SIZE} (another value)" in str(caught.value)
    checkpoint = changing.backend().load_checkpoint_metadata("job", 2)
    assert recorded_nodes(checkpoint)["node"].settings["size"].text == "${SIZE}"
    assert b"3601s" not in checkpoint.properties[NODES]
    # Written out, the same value is the same setting.
    assert changing.check(changing.plan("std.tumbling_window", f"size: 3601s, {COUNT}")).warnings == ()


def test_the_folder_of_a_sink_may_change_but_not_while_files_wait_there(changing):
    config = f"size: 5m, {COUNT}"
    changing.kill(changing.plan("std.tumbling_window", config), Published, 2)
    moved = changing.plan("std.tumbling_window", config, out="elsewhere")
    with pytest.raises(IncompatibleCheckpointError) as caught:
        changing.check(moved)
    assert (
        f"  out (filesystem.sink), changed: path {changing.folder}/out -> {changing.folder}/elsewhere; it has staged "
        "output that is not committed yet: run the pipeline as it was once more to commit it\n"
    ) in str(caught.value)
    changing.kill(changing.plan("std.tumbling_window", config), Committed, 3)
    assert changing.check(moved).warnings == ()
