"""A changed pipeline starts with the state it has a place for, and drops the rest only when told to."""

from datetime import timedelta
from functools import partial

import pytest
from google.protobuf import struct_pb2

from arroyo_core.api import ArrowOperator, ArroyoSchema, ConstructedOperator, OperatorConstructor, Origin
from arroyo_core.errors import Domain, error_domain
from arroyo_core.proto.exchange_pb2 import CarriedState
from arroyo_core.runtime.adaptation import adapt_checkpoint
from arroyo_core.runtime.carry import CARRIED
from arroyo_core.runtime.declarations import declare_operators
from arroyo_core.runtime.events import Committed, Published
from arroyo_core.runtime.former_ids import NODES
from arroyo_core.runtime.plan_changes import ChangeKind, compare_plan
from arroyo_core.runtime.start import StartOptions
from arroyo_core.state import timestamp_table_config
from arroyo_core.state.failures import IncompatibleCheckpointError

DROP = StartOptions(allow_drop=True)


@pytest.fixture
def changed(runs, node_of):
    """The pipeline with nodes replaced by others, by id; None takes a node out."""

    def change(**nodes):
        kept = [nodes.get(each["id"], each) for each in runs.nodes]
        known = {each["id"] for each in runs.nodes}
        return [each for each in kept if each] + [each for name, each in nodes.items() if name not in known and each]

    return change


def compare(runs, nodes, epoch):
    plan = runs.plan(nodes)
    found = compare_plan(declare_operators(plan, runs.lab.plugins), runs.checkpoint(epoch))
    return {change.operator_id: change for change in found}


def test_an_unchanged_pipeline_takes_over_the_checkpoint_as_it_is(runs):
    runs.kill(Committed, 2)
    assert runs.check().checkpoint == runs.checkpoint(2)


def test_another_parallelism_takes_over_everything(runs):
    output = runs.kill(Committed, 2)
    assert {change.kind for change in compare(runs, None, 2).values()} == {ChangeKind.REUSED}
    assert (output + runs.run(parallelism=3)).is_exact


def test_operators_without_state_come_and_go_freely(runs, changed, node_of):
    output = runs.kill(Committed, 2)
    nodes = changed(passing=node_of("passing", "passing", "rows"), copies=node_of("copies", "sink", "passing"))
    assert compare(runs, nodes, 2)["passing"].kind is ChangeKind.NEW
    output += runs.kill(Committed, 3, nodes=nodes)
    assert compare(runs, None, 3)["passing"].reason == "no state"
    assert (output + runs.run()).is_exact


def test_a_removed_operator_with_state_is_refused_before_anything_runs(runs, changed):
    runs.kill(Committed, 2)
    nodes = changed(totals=None, sums=None)
    with pytest.raises(IncompatibleCheckpointError) as caught:
        runs.run(nodes=nodes)
    assert error_domain(caught.value) is Domain.USER
    assert str(caught.value).startswith(
        "the pipeline has no place for state of job 'lab' at epoch 2:\n"
        "  totals (test.totals), removed: the pipeline has no such node; it has totals ("
    )
    assert "--allow-drop" in str(caught.value)
    assert "sums" not in str(caught.value)
    assert runs.backend().list_epochs() == [1, 2]


def test_dropped_state_is_gone_from_the_next_checkpoint_and_the_rest_goes_on(runs, changed):
    output = runs.kill(Committed, 2)
    nodes = changed(totals=None, sums=None)
    assert runs.check(DROP, nodes=nodes).warnings[0].startswith("state is dropped: totals (test.totals), removed")
    output += runs.run(DROP, nodes=nodes)
    assert output.numbers == runs.numbers
    assert {item.operator_metadata.operator_id for item in runs.checkpoint(3).operators} == {"rows", "copies"}
    # The state is dropped with the first epoch; from then on the pipeline and its checkpoint agree.
    assert runs.check(nodes=nodes).warnings == ()


def test_a_renamed_node_is_told_how_to_keep_its_state(runs, changed, node_of):
    runs.kill(Committed, 2)
    nodes = changed(totals=node_of("by_key", "totals", "rows"), sums=node_of("sums", "sink", "by_key"))
    with pytest.raises(IncompatibleCheckpointError, match="was it renamed to 'by_key'"):
        runs.check(nodes=nodes)


def test_another_operator_under_an_id_starts_empty(runs, changed, node_of):
    runs.kill(Committed, 2)
    nodes = changed(totals=node_of("totals", "passing", "rows"))
    with pytest.raises(IncompatibleCheckpointError, match=r"incompatible: it was test\.totals in the checkpoint"):
        runs.check(nodes=nodes)
    output = runs.run(DROP, nodes=nodes)
    assert sum(output.numbers.values()) > 0


def test_a_new_source_makes_a_pipeline_whose_data_ended_run_on(runs, changed, node_of):
    runs.run()
    latest = runs.backend().list_epochs()[-1]
    assert runs.checkpoint(latest).is_final
    nodes = changed(more=node_of("more", "rows", count=7), others=node_of("others", "sink", "more"))
    start = runs.check(nodes=nodes)
    assert not start.checkpoint.is_final
    output = runs.run(nodes=nodes)
    assert sorted(output.numbers) == list(range(7))
    assert set(output.numbers.values()) == {1}


@pytest.mark.parametrize("rows", [4, 1000])
def test_a_source_that_starts_over_is_heard_again_behind_an_end(runs, changed, node_of, rows):
    """The chain behind it was closed, at the end of time: both are forgotten with the source's position."""
    runs.run()
    nodes = changed(rows=node_of("numbers", "rows", count=24), totals=node_of("totals", "totals", "numbers"))
    nodes[-1] = node_of("copies", "sink", "numbers")
    with pytest.raises(IncompatibleCheckpointError):
        runs.check(nodes=nodes)
    output = runs.run(DROP, nodes=nodes, checkpoint={"interval": "1h", "rows": rows})
    assert output.numbers - runs.numbers == dict.fromkeys(doubled(runs), 1)
    assert runs.numbers - output.numbers == {}


def doubled(runs):
    """The totals after every row was added a second time."""
    return [2 * sum(n for n in runs.numbers if n % 5 == key) for key in range(5)]


def test_staged_output_of_a_removed_sink_is_not_lost_silently(runs, changed):
    runs.kill(Published, 2)
    nodes = changed(copies=None)
    with pytest.raises(IncompatibleCheckpointError, match="run the pipeline as it was once more to commit it"):
        runs.check(nodes=nodes)
    # Once it is committed the sink may go without a word: it holds nothing else.
    runs.kill(Committed, 3)
    assert runs.check(nodes=nodes).warnings == ()


def test_staged_output_of_the_sinks_that_stay_is_committed(runs, changed):
    runs.kill(Published, 2)
    nodes = changed(totals=None, sums=None)
    output = runs.run(DROP, nodes=nodes)
    assert output.epochs[0] == 2


def levels(found):
    """What was carried of each operator: the event times that its subtasks were told about."""
    carried = CarriedState.FromString(found.properties[CARRIED])
    return {each.operator_id: [one.input.event_time_us for one in each.subtasks] for each in carried.operators}


def test_watermarks_belong_to_nodes_and_not_to_numbers_of_inputs(runs, changed, node_of):
    nodes = changed(more=node_of("more", "rows", count=40, batch=5), copies=node_of("copies", "sink", "rows", "more"))
    runs.kill(Committed, 2, nodes=nodes)
    checkpoint = runs.checkpoint(2)
    turned = changed(more=node_of("more", "rows", count=40, batch=5), copies=node_of("copies", "sink", "more", "rows"))
    plan = runs.plan(turned)
    changes = compare_plan(declare_operators(plan, runs.lab.plugins), checkpoint)
    assert levels(adapt_checkpoint(checkpoint, plan, changes)) == levels(checkpoint)
    assert levels(checkpoint)["more"] != levels(checkpoint)["rows"]


def test_an_operator_that_starts_empty_forgets_its_event_time_and_its_neighbours_do_not(runs, changed, node_of):
    runs.kill(Committed, 2)
    plan = runs.plan(changed(totals=node_of("totals", "passing", "rows", keys=["key"])))
    changes = compare_plan(declare_operators(plan, runs.lab.plugins), runs.checkpoint(2))
    adapted = adapt_checkpoint(runs.checkpoint(2), plan, changes)
    before = levels(runs.checkpoint(2))
    assert set(before) == {"rows", "totals", "sums", "copies"}
    assert levels(adapted) == {name: times for name, times in before.items() if name != "totals"}


class Windowed(ArrowOperator):
    """Keeps every row of its input, in a table with its columns."""

    def __init__(self, config):
        self.keys = tuple(config["keys"])

    def name(self):
        return "test.windowed"

    def output_schema(self, inputs):
        return inputs[0]

    def routing_keys(self, inputs):
        return [self.keys]

    def tables(self, inputs):
        schema = ArroyoSchema(inputs[0].schema, "at", self.keys)
        return {"rows": timestamp_table_config("rows", "", timedelta(days=1), False, schema)}

    def on_start(self, ctx):
        self.view = ctx.table_manager.get_key_time_table("rows")

    def process_batch(self, batch, ctx, collector):
        self.view.insert(batch)
        collector.collect(batch)


class WindowedConstructor(OperatorConstructor):
    config_type = struct_pb2.Struct

    def __init__(self, kind):
        self.kind = kind

    def with_config(self, config, registry):
        return ConstructedOperator.from_operator(self.kind({"keys": list(config["keys"])}))


@pytest.fixture
def windowed_nodes(runs, changed, node_of):
    """Given a class and its keys: the nodes with an operator of that class in front of the copies."""

    def nodes(kind, *keys):
        registry = runs.lab.plugins.registry
        if "test.windowed" not in registry.constructors:
            with registry.registering(Origin("arroyo-test", "0.1")):
                registry.add("test.windowed", WindowedConstructor(kind))
        return changed(
            windowed=node_of("windowed", "windowed", "rows", keys=list(keys)),
            copies=node_of("copies", "sink", "windowed"),
        )

    return nodes


def test_columns_that_depend_on_the_input_are_compared_too(runs, windowed_nodes):
    nodes = partial(windowed_nodes, Windowed)
    output = runs.kill(Committed, 2, nodes=nodes("key"))
    with pytest.raises(IncompatibleCheckpointError, match=r"key columns \('key',\) in the checkpoint"):
        runs.check(nodes=nodes("n"))
    assert runs.check(nodes=nodes("key")).warnings == ()
    assert (output + runs.run(DROP, nodes=nodes("n"))).is_exact


def test_an_operator_of_an_earlier_version_that_defines_its_tables_goes_on(runs, windowed_nodes):
    with pytest.warns(
        DeprecationWarning, match=r"DefinesTables.tables\(self\) is deprecated: write tables\(self, inputs"
    ):

        class DefinesTables(Windowed):
            def tables(self):
                return {"rows": timestamp_table_config("rows", "", timedelta(days=1), False, None)}

            def on_start(self, ctx):
                schema = ArroyoSchema(ctx.input_schemas[0].schema, "at", self.keys)
                ctx.table_manager.define_table("rows", schema)
                super().on_start(ctx)

    nodes = windowed_nodes(DefinesTables, "key")
    with pytest.warns(
        DeprecationWarning, match=r"operator 'windowed': define_table is deprecated.*tables\(self, inputs"
    ):
        output = runs.kill(Committed, 2, nodes=nodes)
    assert "windowed" in {item.operator_metadata.operator_id for item in runs.checkpoint(2).operators}
    # Its columns are known when it starts, not before.
    assert runs.check(nodes=nodes).warnings == ()
    with pytest.warns(DeprecationWarning, match="define_table is deprecated"):
        assert (output + runs.run(nodes=nodes)).is_exact


def test_adapting_changes_nothing_but_what_is_left_out(runs, changed):
    runs.kill(Committed, 2)
    plan = runs.plan(changed(totals=None, sums=None))
    before = runs.checkpoint(2)
    changes = compare_plan(declare_operators(plan, runs.lab.plugins), before)
    adapted = adapt_checkpoint(before, plan, changes)
    kept = [item for item in before.operators if item.operator_metadata.operator_id in plan.nodes]
    assert list(adapted.operators) == kept
    assert (adapted.epoch, adapted.attempt_id) == (before.epoch, before.attempt_id)
    assert adapted.properties[NODES] == before.properties[NODES]
    assert before == runs.checkpoint(2)
