"""A pipeline beside a checkpoint: what becomes of each node, and of its state. No I/O."""

from datetime import timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema, Origin
from arroyo_core.pipeline import plan_text
from arroyo_core.pipeline.plan import Setting
from arroyo_core.plugin import installed_plugins
from arroyo_core.proto.state_pb2 import (
    CheckpointMetadata,
    OperatorCheckpointMetadata,
    OperatorMetadata,
    RecordedNode,
    RecordedNodes,
    StateFile,
    TableCheckpointMetadata,
    TableType,
)
from arroyo_core.runtime.declarations import DeclaredOperator
from arroyo_core.runtime.former_ids import NODES
from arroyo_core.runtime.plan_changes import (
    ChangeKind,
    compare_plan,
    describe_drops,
    describe_misread,
    describe_taken_over,
    record_nodes,
    recorded_nodes,
)
from arroyo_core.runtime.setting_changes import record_settings
from arroyo_core.state import ColumnRules, global_table_config, global_table_config_with_version, timestamp_table_config
from arroyo_core.state.table_types import derive_mismatch

ORIGIN = Origin("arroyo-test", "1.0")
COLUMNS = {"k": pa.int64(), "v": pa.int64(), "ts": pa.timestamp("us", "UTC")}


def rows_table(name="rows", *, keys=("k",), columns=None, generational=False, hours=1):
    schema = ArroyoSchema(pa.schema(columns or COLUMNS), "ts", keys)
    return {name: timestamp_table_config(name, "", timedelta(hours=hours), generational, schema)}


def declared(name, operator="test.count", tables=None, **facts):
    return DeclaredOperator(
        id=name, operator=operator, origin=facts.pop("origin", ORIGIN), tables=tables or {}, **facts
    )


def stored(name, tables, *, size_bytes=100, version=0, staged=False, empty=()):
    """An operator's part of a checkpoint, with one file in each table that is not `empty`."""
    operator = OperatorCheckpointMetadata(
        operator_metadata=OperatorMetadata(job_id="job", operator_id=name, epoch=7), table_configs=tables
    )
    for table, config in tables.items():
        found = TableCheckpointMetadata(table_type=config.table_type)
        file = StateFile(path=f"job/checkpoints/7/{name}-{table}", size_bytes=size_bytes, rows=3, state_version=version)
        files = [] if table in empty else [file]
        if config.table_type == TableType.GLOBAL_KEY_VALUE:
            found.global_keyed.files.extend(files)
            if staged:
                found.global_keyed.commit_data_by_subtask[0] = b"output"
        else:
            found.expiring_keyed_time.files.extend(files)
        operator.table_checkpoint_metadata[table].CopyFrom(found)
    return operator


def checkpoint(*operators, nodes=(), needs_commit=False):
    recorded = [
        RecordedNode(
            operator_id=name,
            operator=operator,
            distribution="arroyo-test",
            version="1.0",
            inputs=inputs,
            is_source=not inputs,
        )
        for name, operator, *inputs in nodes
    ]
    return CheckpointMetadata(
        job_id="job",
        epoch=7,
        operators=operators,
        needs_commit=needs_commit,
        properties={NODES: RecordedNodes(nodes=recorded).SerializeToString()},
    )


def compare(operators, found, **facts):
    return {change.operator_id: change for change in compare_plan(operators, found, **facts)}


GLOBAL = global_table_config("counts", "")


def test_an_unchanged_operator_is_reused_with_its_tables():
    change = compare([declared("a", tables=GLOBAL)], checkpoint(stored("a", GLOBAL), nodes=[("a", "test.count")]))["a"]
    assert (change.kind, change.reason, change.needs_allow_drop) == (ChangeKind.REUSED, "", False)
    assert [(table.name, table.rows, table.size_bytes) for table in change.tables] == [("counts", 3, 100)]
    assert not change.starts_over


def test_a_file_of_two_key_ranges_is_counted_once():
    operator = stored("a", GLOBAL)
    files = operator.table_checkpoint_metadata["counts"].global_keyed.files
    files.append(files[0])
    (change,) = compare_plan([declared("a", tables=GLOBAL)], checkpoint(operator))
    assert change.tables[0].size_bytes == 100


def test_nodes_without_state_come_and_go_without_consequence():
    found = compare(
        [declared("kept", "test.map"), declared("came", "test.map")],
        checkpoint(nodes=[("kept", "test.map"), ("gone", "test.map")]),
    )
    assert {name: (change.kind.value, change.reason) for name, change in found.items()} == {
        "kept": ("reused", "no state"),
        "came": ("new", ""),
        "gone": ("removed", "no state"),
    }
    assert not any(change.needs_allow_drop for change in found.values())


def test_a_checkpoint_that_records_no_nodes_leaves_those_without_tables_unjudged():
    found = compare([declared("map"), declared("count", tables=GLOBAL)], checkpoint(stored("other", GLOBAL)))
    assert found["map"].kind is ChangeKind.REUSED
    assert found["count"].kind is ChangeKind.NEW
    assert (found["other"].kind, found["other"].operator) == (ChangeKind.REMOVED, "")


def test_a_removed_operator_with_state_needs_allow_drop():
    change = compare([], checkpoint(stored("a", GLOBAL), nodes=[("a", "test.count")]))["a"]
    assert change.kind is ChangeKind.REMOVED
    assert change.needs_allow_drop
    assert change.left_out == {"counts"}
    assert describe_drops([change]) == "  a (test.count), removed: the pipeline has no such node; it has counts (100B)"


def test_a_removed_operator_with_empty_tables_does_not():
    change = compare([], checkpoint(stored("a", GLOBAL, empty=["counts"])))["a"]
    assert (change.kind, change.reason, change.needs_allow_drop) == (ChangeKind.REMOVED, "no state", False)
    assert change.left_out == {"counts"}


@pytest.mark.parametrize(
    ("before", "now", "reason"),
    [
        (GLOBAL, {}, "it no longer declares table counts (100B)"),
        ({**GLOBAL, **rows_table()}, rows_table(), "it no longer declares table counts (100B)"),
        (
            global_table_config("rows", ""),
            rows_table(),
            "table 'rows' is GLOBAL_KEY_VALUE in the checkpoint, and declared as EXPIRING_KEYED_TIME_TABLE",
        ),
        (
            rows_table(),
            rows_table(keys=("v",)),
            "table 'rows' has key columns ('k',) in the checkpoint, and is declared with ('v',)",
        ),
        (
            rows_table(),
            rows_table(columns={"k": pa.string(), "ts": COLUMNS["ts"]}),
            "table 'rows' has columns ['k int64', 'v int64', 'ts timestamp[us, tz=UTC]'] in the checkpoint, "
            "and is declared with ['k string', 'ts timestamp[us, tz=UTC]']",
        ),
        (
            rows_table(),
            rows_table(generational=True),
            "table 'rows' has generational False in the checkpoint, and is declared with True",
        ),
    ],
)
def test_a_table_that_went_or_changed_makes_its_operator_incompatible(before, now, reason):
    change = compare([declared("a", tables=now)], checkpoint(stored("a", before)))["a"]
    assert (change.kind, change.reason) == (ChangeKind.INCOMPATIBLE, reason)
    assert change.needs_allow_drop


def test_a_table_that_went_takes_no_other_with_it():
    before = {**GLOBAL, **rows_table()}
    change = compare([declared("a", tables=rows_table())], checkpoint(stored("a", before)))["a"]
    assert change.left_out == {"counts"}
    assert not change.starts_over


def test_a_table_that_changed_takes_all_others_with_it():
    before = {**GLOBAL, **rows_table()}
    now = {**GLOBAL, **rows_table(keys=("v",))}
    change = compare([declared("a", tables=now)], checkpoint(stored("a", before)))["a"]
    assert change.left_out == {"counts", "rows"}
    assert change.starts_over


def test_an_empty_table_may_change_in_any_way():
    change = compare(
        [declared("a", tables={**GLOBAL, **rows_table(keys=("v",))})],
        checkpoint(stored("a", {**GLOBAL, **rows_table()}, empty=["rows"])),
    )["a"]
    assert (change.kind, change.needs_allow_drop) == (ChangeKind.REUSED, False)
    assert change.left_out == {"rows"}


def test_retention_may_change():
    change = compare([declared("a", tables=rows_table(hours=9))], checkpoint(stored("a", rows_table())))["a"]
    assert (change.kind, change.left_out) == (ChangeKind.REUSED, frozenset())


def test_state_of_a_newer_version_is_incompatible_and_of_an_older_one_migrates():
    def versioned(number):
        return global_table_config_with_version("counts", "", number)

    newer = compare([declared("a", tables=versioned(1))], checkpoint(stored("a", versioned(2), version=2)))["a"]
    assert newer.kind is ChangeKind.INCOMPATIBLE
    assert newer.reason == "table 'counts' holds state of version 2, and this code reads up to version 1"
    older = compare([declared("a", tables=versioned(3))], checkpoint(stored("a", versioned(2), version=2)))["a"]
    assert (older.kind, older.reason) == (ChangeKind.REUSED, "table 'counts' migrates from version 2 to 3")


def test_another_operator_under_the_same_id_takes_over_nothing():
    found = checkpoint(
        stored("a", GLOBAL), stored("b", GLOBAL, empty=["counts"]), nodes=[("a", "test.sum"), ("b", "test.sum")]
    )
    changes = compare([declared("a", tables=GLOBAL), declared("b", tables=GLOBAL)], found)
    assert changes["a"].kind is ChangeKind.INCOMPATIBLE
    assert changes["a"].reason == "it was test.sum in the checkpoint"
    assert changes["a"].starts_over
    assert (changes["b"].kind, changes["b"].reason) == (
        ChangeKind.NEW,
        "it was test.sum in the checkpoint, without state",
    )
    assert changes["b"].left_out == {"counts"}


def test_another_version_of_the_plugin_is_told():
    operator = declared("a", tables=GLOBAL, origin=Origin("arroyo-test", "2.0"))
    change = compare([operator], checkpoint(stored("a", GLOBAL), nodes=[("a", "test.count")]))["a"]
    assert (change.kind, change.reason) == (ChangeKind.REUSED, "written with arroyo-test 1.0, now arroyo-test 2.0")


def test_a_new_table_of_a_known_operator_is_told():
    change = compare([declared("a", tables={**GLOBAL, **rows_table()})], checkpoint(stored("a", GLOBAL)))["a"]
    assert (change.kind, change.reason) == (ChangeKind.REUSED, "new table: rows")


def test_a_renamed_node_is_suspected_only_between_operators_of_one_kind():
    nodes = [("a", "test.count"), ("b", "test.sum")]
    found = checkpoint(stored("a", GLOBAL), stored("b", GLOBAL), nodes=nodes)
    changes = compare([declared("c", "test.count", GLOBAL)], found)
    assert "was it renamed to 'c'? Then write 'was: a' in that node" in changes["a"].reason
    assert "renamed" not in changes["b"].reason


def test_a_source_whose_state_is_dropped_reads_from_its_beginning():
    found = checkpoint(stored("a", GLOBAL), nodes=[("a", "test.sum")])
    change = compare([declared("a", tables=GLOBAL, is_source=True)], found)["a"]
    assert change.starts_over
    assert describe_drops([change]).endswith("; the source reads from its beginning")


STAGED = global_table_config("files", "", uses_two_phase_commit=True)


def test_staged_output_counts_as_state_until_it_is_committed():
    found = checkpoint(stored("sink", STAGED, staged=True, empty=["files"]), needs_commit=True)
    pending = compare([], found, is_committed=False)["sink"]
    assert pending.needs_allow_drop
    assert "run the pipeline as it was once more to commit it" in pending.reason
    assert not compare([], found, is_committed=True)["sink"].needs_allow_drop


@pytest.mark.parametrize("is_committing", [True, False])
def test_staged_output_needs_an_operator_that_commits_it(is_committing):
    found = checkpoint(stored("sink", STAGED, staged=True, empty=["files"]), needs_commit=True)
    tables = STAGED if is_committing else global_table_config("files", "")
    sink = declared("sink", tables=tables, is_committing=is_committing)
    change = compare([sink], found, is_committed=False)["sink"]
    assert change.needs_allow_drop is not is_committing


def settings(**values):
    return {label: Setting.of(value) for label, value in values.items()}


def with_settings(found, **values):
    """The checkpoint, with these settings recorded for node `a`."""
    recorded = RecordedNodes.FromString(found.properties[NODES])
    (node,) = [each for each in recorded.nodes if each.operator_id == "a"]
    for label, setting in record_settings(settings(**values)).items():
        node.settings[label].CopyFrom(setting)
    found.properties[NODES] = recorded.SerializeToString()
    return found


def test_state_of_other_settings_needs_allow_change():
    found = with_settings(checkpoint(stored("a", GLOBAL), nodes=[("a", "test.count")]), size="1h", offset="0s")
    same = compare([declared("a", tables=GLOBAL, settings=settings(size="1h", offset="0s"))], found)["a"]
    assert (same.kind, same.reason, same.needs_allow_change) == (ChangeKind.REUSED, "", False)
    change = compare([declared("a", tables=GLOBAL, settings=settings(offset="3s", size="2h"))], found)["a"]
    assert (change.kind, change.needs_allow_change, change.needs_allow_drop) == (ChangeKind.CHANGED, True, False)
    assert change.reason == "offset 0s -> 3s; size 1h -> 2h"
    assert describe_misread([change]) == "  a (test.count), changed: offset 0s -> 3s; size 1h -> 2h"
    assert not change.starts_over


def test_settings_are_compared_where_both_sides_have_them():
    """One may be new with a version of the operator, and a checkpoint may be older than all of them."""
    node = declared("a", tables=GLOBAL, settings=settings(size="2h", keep="first"))
    bare = checkpoint(stored("a", GLOBAL), nodes=[("a", "test.count")])
    assert compare([node], bare)["a"].kind is ChangeKind.REUSED
    assert compare([node], checkpoint(stored("a", GLOBAL)))["a"].kind is ChangeKind.REUSED
    assert compare([node], with_settings(bare, size="2h", gone="x"))["a"].kind is ChangeKind.REUSED


def parts_of(**texts):
    return {"sums": Setting.of_parts(texts, str)}


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (parts_of(a="sum(x) as a"), ""),
        (parts_of(b="sum(y) as b", a="sum(x) as a", c="sum(z) as c"), ""),
        (parts_of(), ""),
        (parts_of(c="sum(z) as c"), ""),
        (parts_of(a="sum(z) as a", b="sum(y) as b"), "sums sum(x) as a -> sum(z) as a"),
        (settings(sums="sum(x) as a"), "sums sum(x) as a, sum(y) as b -> sum(x) as a"),
    ],
)
def test_parts_of_a_setting_come_and_go_and_only_those_that_stay_are_compared(now, reason):
    found = checkpoint(stored("a", GLOBAL), nodes=[("a", "test.count")])
    recorded = RecordedNodes.FromString(found.properties[NODES])
    before = record_settings(parts_of(a="sum(x) as a", b="sum(y) as b"))
    recorded.nodes[0].settings["sums"].CopyFrom(before["sums"])
    found.properties[NODES] = recorded.SerializeToString()
    change = compare([declared("a", tables=GLOBAL, settings=now)], found)["a"]
    assert (change.reason, change.needs_allow_change) == (reason, bool(reason))


def test_parts_are_compared_as_a_whole_with_a_checkpoint_from_before_there_were_any():
    found = with_settings(checkpoint(stored("a", GLOBAL), nodes=[("a", "test.count")]), sums="sum(x) as a")
    same = declared("a", tables=GLOBAL, settings=parts_of(a="sum(x) as a"))
    assert compare([same], found)["a"].kind is ChangeKind.REUSED
    more = declared("a", tables=GLOBAL, settings=parts_of(a="sum(x) as a", b="sum(y) as b"))
    assert compare([more], found)["a"].reason == "sums sum(x) as a -> sum(x) as a, sum(y) as b"


def test_what_becomes_of_old_rows_is_said_once():
    before = rows_table(columns=COLUMNS)
    rules = ColumnRules()
    schema = ArroyoSchema(pa.schema({**COLUMNS, "x": pa.int64()}), "ts", ("k",))
    now = {"rows": timestamp_table_config("rows", "", timedelta(hours=1), False, schema, column_rules=rules)}
    found = checkpoint(stored("a", {**before, "more": before["rows"]}), nodes=[("a", "test.count")])
    change = compare([declared("a", tables={**now, "more": now["rows"]})], found)["a"]
    assert (change.kind, change.reason) == (ChangeKind.REUSED, "new column x is null in old rows")
    assert describe_taken_over([change]) == ["a (test.count): new column x is null in old rows"]
    empty = checkpoint(stored("a", before, empty=["rows"]), nodes=[("a", "test.count")])
    assert compare([declared("a", tables=now)], empty)["a"].reason == ""


@pytest.mark.parametrize("tables", [{}, GLOBAL])
def test_a_node_without_stored_rows_has_nothing_to_misread(tables):
    operators = [stored("a", tables, empty=["counts"])] if tables else []
    found = with_settings(checkpoint(*operators, nodes=[("a", "test.count")]), size="1h")
    change = compare([declared("a", tables=tables, settings=settings(size="2h"))], found)["a"]
    assert (change.kind, change.needs_allow_change) == (ChangeKind.REUSED, False)


def test_state_that_is_dropped_is_not_misread():
    found = with_settings(checkpoint(stored("a", rows_table()), nodes=[("a", "test.count")]), size="1h")
    change = compare([declared("a", tables=rows_table(keys=("v",)), settings=settings(size="2h"))], found)["a"]
    assert (change.kind, change.needs_allow_drop, change.needs_allow_change) == (ChangeKind.INCOMPATIBLE, True, False)
    other = compare([declared("a", "test.sum", tables=rows_table(), settings=settings(size="2h"))], found)["a"]
    assert (other.kind, other.needs_allow_change) == (ChangeKind.INCOMPATIBLE, False)


def test_of_a_node_that_lost_a_table_the_others_may_be_misread():
    tables = {**GLOBAL, **rows_table()}
    found = with_settings(checkpoint(stored("a", tables), nodes=[("a", "test.count")]), size="1h")
    change = compare([declared("a", tables=GLOBAL, settings=settings(size="2h"))], found)["a"]
    assert (change.kind, change.needs_allow_drop, change.needs_allow_change) == (ChangeKind.INCOMPATIBLE, True, True)
    assert change.reason == "it no longer declares table rows (100B); changed: size 1h -> 2h"


def test_a_setting_whose_value_cannot_be_shown_is_compared_all_the_same():
    found = with_settings(checkpoint(stored("a", GLOBAL), nodes=[("a", "test.count")]), path="/old")
    recorded = RecordedNodes.FromString(found.properties[NODES])
    recorded.nodes[0].settings["path"].text = "${FOLDER}"
    found.properties[NODES] = recorded.SerializeToString()
    hidden = {"path": Setting.of("/new", text="${FOLDER}")}
    change = compare([declared("a", tables=GLOBAL, settings=hidden)], found)["a"]
    assert change.reason == "path ${FOLDER} -> ${FOLDER} (another value)"
    assert compare([declared("a", tables=GLOBAL, settings=settings(path="/old"))], found)["a"].settings == ()


TABLES = [GLOBAL, global_table_config("rows", ""), rows_table(), rows_table(keys=("v",)), rows_table(generational=True)]
SOME_TABLES = st.lists(st.sampled_from(TABLES), max_size=3).map(
    lambda parts: {name: config for part in parts for name, config in part.items()}
)


@given(
    before=st.dictionaries(st.sampled_from("abc"), SOME_TABLES, max_size=3),
    now=st.dictionaries(st.sampled_from("abc"), SOME_TABLES, max_size=3),
    empty=st.sets(st.sampled_from(["counts", "rows"])),
)
def test_what_is_not_left_out_fits_and_what_is_lost_is_told(before, now, empty):
    found = checkpoint(*(stored(name, tables, empty=empty) for name, tables in before.items() if tables))
    changes = compare([declared(name, tables=tables) for name, tables in now.items()], found)
    assert set(changes) == set(now) | {name for name, tables in before.items() if tables}
    for name, tables in before.items():
        if not tables:
            continue
        for table in set(tables) - changes[name].left_out:
            assert derive_mismatch(tables[table], now[name][table]) is None
        assert {table.name for table in changes[name].dropped} == set(changes[name].left_out) - empty
        assert changes[name].needs_allow_drop is (
            changes[name].kind in (ChangeKind.INCOMPATIBLE, ChangeKind.REMOVED) and bool(set(tables) - empty)
        )


PARTIAL = """\
name: counts
parallelism: 2
nodes:
  - {id: numbers, operator: impulse.source, config: {count: 10}}
  - {id: marked, operator: std.watermark, inputs: [numbers], config: {column: timestamp}}
  - id: windows
    operator: std.tumbling_window
    inputs: [marked]
    config: {size: 1s, keys: [counter], aggregates: [{function: count, as: n}]}
  - {id: out, operator: std.blackhole, inputs: [windows]}
"""


def test_nodes_that_the_planner_put_in_are_not_recorded():
    plan = plan_text(PARTIAL, plugins=installed_plugins(), environment={})
    assert "windows:partial" in plan.nodes
    recorded = recorded_nodes(CheckpointMetadata(properties={NODES: record_nodes(plan)}))
    assert {name: list(node.inputs) for name, node in recorded.items()} == {
        "numbers": [],
        "marked": ["numbers"],
        "windows": ["marked"],
        "out": ["windows"],
    }
    # Its operator behind the shuffle sees partial rows, and still answers for the stream that was written.
    assert recorded["windows"].settings["time"].text == "event (timestamp)"
    assert recorded["windows"].settings["size"].text == "1s"
