"""std.lookup_join with a table that another distribution brings, from the text of a pipeline to its rows."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest
from arroyo_std import join_pb2
from arroyo_std.plugin import arroyo_register
from arroyo_testing import FakeClock, OperatorHarness
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2, text_format

from arroyo_core.api import (
    ArroyoSchema,
    ConstructedOperator,
    LookupConstructor,
    LookupTable,
    OperatorConstructor,
    Origin,
    Registry,
    SourceFinishType,
    SourceOperator,
    with_defaults,
)
from arroyo_core.errors import ConfigError, DataError, ExternalError, InvalidPipelineError, OperatorError
from arroyo_core.pipeline import plan_text
from arroyo_core.plugin import PluginSet
from arroyo_core.proto import options_pb2
from arroyo_core.runtime.secrets import NodeSecrets

PROTO = """
name: "tests/lookup_of_a_plugin.proto" package: "tests_lookup" syntax: "proto3"
dependency: "arroyo_core/proto/options.proto"
message_type { name: "Column"
  field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "name" }
  field { name: "type" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "type" } }
message_type { name: "Shelf"
  field { name: "shelf" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "shelf"
    options { [arroyo_core.required]: true } }
  field { name: "columns" number: 2 type: TYPE_MESSAGE type_name: ".tests_lookup.Column" label: LABEL_REPEATED
    json_name: "columns" options { [arroyo_core.ordered_map]: true } }
  field { name: "patience" number: 3 type: TYPE_INT64 label: LABEL_OPTIONAL json_name: "patience"
    options { [arroyo_core.duration]: true [arroyo_core.default]: "5s" } }
  field { name: "door" number: 4 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "door"
    options { [arroyo_core.secret]: true } } }
"""
STREAM = ArroyoSchema(pa.schema({"id": pa.int64()}))
TYPES = {"int64": pa.int64(), "string": pa.string(), "dictionary": pa.dictionary(pa.int32(), pa.string())}
#: What is on the shelves: rows, or what reading them raises.
SHELVES: dict[str, pa.Table | Exception] = {}
READS: list[str] = []


def shelf_type():
    file = text_format.Parse(PROTO, descriptor_pb2.FileDescriptorProto())
    assert options_pb2.DESCRIPTOR.name in file.dependency
    descriptor_pool.Default().AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(descriptor_pool.Default().FindMessageTypeByName("tests_lookup.Shelf"))


Shelf = shelf_type()


class ShelfTable(LookupTable):
    def __init__(self, config):
        self.config = config

    def name(self):
        return f"shelf {self.config.shelf}"

    def cache_key(self):
        return self.config.SerializeToString(deterministic=True)

    def schema(self):
        for column in self.config.columns:
            if column.type not in TYPES:
                raise ConfigError("no such type", field=f"columns.{column.name}", value=column.type, allowed=[*TYPES])
        if self.config.shelf == "far":
            raise ExternalError("the shelf is far away")
        return pa.schema([(column.name, TYPES[column.type]) for column in self.config.columns])

    def read(self, schema, max_bytes):
        READS.append(self.config.shelf)
        found = SHELVES[self.config.shelf]
        if isinstance(found, Exception):
            raise found
        return found


class ShelfConstructor(LookupConstructor):
    config_type = Shelf

    def resolve(self, config):
        if config.shelf.startswith("/"):
            raise ConfigError("a shelf is not a path", field="shelf", value=config.shelf)
        resolved = Shelf()
        resolved.CopyFrom(config)
        resolved.shelf = f"{config.shelf} of {os.getpid()}" if config.shelf == "mine" else config.shelf
        return resolved

    def with_config(self, config, registry):
        if config.patience < 0:
            raise ConfigError("nobody waits so short", field="patience", value=config.patience)
        if config.door == "broken":
            raise ConfigError(f"the door {config.door} does not open", field="door")
        return ShelfTable(config)


class Rows(SourceOperator):
    def name(self):
        return "t.rows"

    def output_schema(self, inputs):
        return STREAM

    def run(self, ctx, collector):
        return SourceFinishType.FINAL


class RowsConstructor(OperatorConstructor):
    config_type = struct_pb2.Struct

    def with_config(self, config, registry):
        return ConstructedOperator.from_source(Rows())


@pytest.fixture
def plugins():
    registry = Registry()
    arroyo_register(registry)
    with registry.registering(Origin("arroyo-shelves", "3.1")):
        registry.add("t.rows", RowsConstructor())
        registry.add_lookup("t.shelf", ShelfConstructor())
    return PluginSet(registry, [])


@pytest.fixture(autouse=True)
def _shelves():
    SHELVES.clear()
    READS.clear()


def pipeline(table: str, cache: str = "{ttl: 60s}") -> str:
    return f"""
name: shelves
nodes:
  - id: rows
    operator: t.rows
  - id: joined
    operator: std.lookup_join
    inputs: [rows]
    config:
      on: [{{left: id, right: z}}]
      cache: {cache}
      table: {table}
  - id: out
    operator: std.blackhole
    inputs: [joined]
"""


#: Where the table begins in that text.
LINE, COLUMN = 12, 14
#: The order of the columns is not that of their names.
TABLE = "{config: {shelf: top, columns: {z: int64, a: string}}, lookup: t.shelf}"


def plan_join(plugins, table=TABLE):
    plan = plan_text(pipeline(table), plugins=plugins, environment={})
    return plan.nodes["joined"]


def make_join(plugins, table=TABLE):
    """The operator as executors make it: from the bytes of the plan."""
    node = plan_join(plugins, table)
    constructor = plugins.constructor("std.lookup_join")
    return constructor.with_config(constructor.config_type.FromString(node.config), plugins.registry).operator


def mistake(plugins, table):
    with pytest.raises(InvalidPipelineError) as raised:
        plan_join(plugins, table)
    (error,) = raised.value.errors
    return error


def rows(*values):
    return pa.table({"z": pa.array(range(1, len(values) + 1), pa.int64()), "a": pa.array(values)})


def batch(*ids):
    return pa.RecordBatch.from_pydict({"id": pa.array(ids, pa.int64())})


def test_rows_are_joined_with_the_table_as_it_is_and_read_again_after_the_ttl(plugins):
    SHELVES["top"] = rows("one", "two")
    clock = FakeClock(now_us=1_000_000)
    with OperatorHarness(lambda: make_join(plugins), inputs=[STREAM], clock=clock) as subtask:
        subtask.feed(batch(2, 3), batch(1))
        SHELVES["top"] = rows("eins")
        clock.advance(59)
        subtask.feed(batch(1))
        clock.advance(1)
        subtask.feed(batch(1, 2))
        assert [(row["id"], row["a"]) for row in subtask.output.to_pylist()] == [
            (2, "two"),
            (1, "one"),
            (1, "one"),
            (1, "eins"),
        ]
        assert READS == ["top", "top"]
        # In the order of the file, which a mapping of protobuf would not keep.
        assert subtask.output.column_names == ["id", "z", "a"]


def test_the_plan_carries_what_the_lookup_resolved_with_its_defaults(plugins):
    node = plan_join(plugins, "{lookup: t.shelf, config: {shelf: mine, columns: {z: int64}}}")
    held = Shelf()
    assert join_pb2.LookupJoinConfig.FromString(node.config).table.config.Unpack(held)
    assert held.shelf == f"mine of {os.getpid()}"
    assert held.patience == 5_000_000


def test_the_same_pipeline_has_the_same_plan(plugins):
    assert plan_join(plugins).config == plan_join(plugins).config


def test_the_plan_says_which_distribution_reads_the_table(plugins):
    fields = dict(make_join(plugins).display().fields)
    assert fields["table"] == "shelf top"
    assert fields["lookup"] == "t.shelf of arroyo-shelves 3.1"


def test_rows_come_in_plain_types_whatever_the_lookup_has(plugins):
    SHELVES["top"] = pa.table({"a": pa.array(["one"]).dictionary_encode(), "z": pa.array([1], pa.int32())})
    table = "{lookup: t.shelf, config: {shelf: top, columns: {z: int64, a: dictionary}}}"
    with OperatorHarness(lambda: make_join(plugins, table), inputs=[STREAM]) as subtask:
        subtask.feed(batch(1))
        assert subtask.output.schema.field("a").type == pa.string()
        assert subtask.output.to_pylist() == [{"id": 1, "z": 1, "a": "one"}]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (DataError("the shelf is too full"), "the shelf is too full"),
        (ExternalError("nobody is there"), "nobody is there"),
        (pa.table({"z": pa.array([1], pa.int64())}), "shelf odd' are not what the pipeline was planned with"),
        (pa.table({"z": pa.array(["x"]), "a": ["y"]}), "shelf odd' are not what the pipeline was planned with"),
    ],
)
def test_a_table_that_cannot_be_read_stops_the_pipeline(plugins, found, words):
    SHELVES["odd"] = found
    table = "{lookup: t.shelf, config: {shelf: odd, columns: {z: int64, a: string}}}"
    with (
        OperatorHarness(lambda: make_join(plugins, table), inputs=[STREAM]) as subtask,
        pytest.raises(OperatorError, match=words),
    ):
        subtask.feed(batch(1))


@pytest.mark.parametrize(
    ("table", "words", "place"),
    [
        ("{lookup: t.shelf, config: {shlef: a}}", "the config of t.shelf has no field 'shlef'", "shlef"),
        ("{lookup: t.shelf}", "the config of t.shelf needs the field 'shelf'", "t.shelf"),
        ("{lookup: t.shelf, config: 7}", "the config of t.shelf must be a mapping", "7"),
        ("{lookup: t.shelf, config: {shelf: a, patience: 5}}", "'patience'", "5"),
        ("{lookup: t.shelf, config: {shelf: /a}}", "a shelf is not a path", "/a"),
        ("{lookup: t.shelf, config: {shelf: a, columns: {z: int46}}}", "no such type", "int46"),
        ("{lookup: t.shelf, config: {shelf: far}}", "the shelf is far away", "{shelf"),
        ("{lookup: t.shlef, config: {shelf: a}}", "there is no lookup 't.shlef'", "t.shlef"),
        ("{path: a.csv, lookup: t.shelf, config: {shelf: a}}", "give one of 'path' and 'lookup'", "a.csv"),
        ("{columns: [z], lookup: t.shelf, config: {shelf: a}}", "'columns' is about files", "[z]"),
        ("{path: a.csv, config: {shelf: a}}", "give 'lookup', too", "{shelf"),
        ("{format: csv}", "give 'path', a file or a folder, or 'lookup'", "{format"),
    ],
)
def test_a_mistake_has_its_place_in_the_file(plugins, table, words, place):
    error = mistake(plugins, table)
    assert words in str(error)
    assert (error.at.line, error.at.column) == (LINE, COLUMN + table.index(place))


def test_an_unknown_lookup_is_answered_with_the_nearest(plugins):
    assert mistake(plugins, "{lookup: t.shlef, config: {shelf: a}}").suggestion == "t.shelf"


def test_a_lookup_of_a_known_distribution_says_what_to_install(plugins):
    assert "pip install arroyo-kafka" in str(mistake(plugins, "{lookup: kafka.lookup, config: {topic: a}}"))


def test_secrets_of_the_lookup_are_not_shown(plugins):
    table = '{lookup: t.shelf, config: {shelf: a, columns: {z: int64}, door: "open sesame"}}'
    node = plan_join(plugins, table)
    # In errors of tasks, which only have the bytes of the plan.
    assert NodeSecrets(node, plugins).redact("the door open sesame is shut") == "the door *** is shut"


def test_a_mistake_beside_a_secret_of_the_lookup_does_not_show_it(plugins):
    table = "{lookup: t.shelf, config: {shelf: a, columns: {z: int64}, door: broken, patience: 1s}}"
    error = mistake(plugins, table)
    assert "the door *** does not open" in str(error)
    assert "broken" not in str(error)


def test_a_password_of_a_lookup_that_is_not_known_is_not_shown(plugins):
    error = mistake(plugins, "{lookup: t.shlef, config: {client: {sasl.password: rosebud}}}")
    assert "rosebud" not in str(error)


def test_a_config_made_in_code_is_checked_too(plugins):
    constructor = plugins.constructor("std.lookup_join")

    def make(config):
        table = join_pb2.LookupTable(lookup="t.shelf")
        table.config.Pack(config)
        written = join_pb2.LookupJoinConfig(table=table, on=[join_pb2.JoinKey(left="id", right="z")])
        return constructor.with_config(with_defaults(written), plugins.registry).operator

    assert make(Shelf(shelf="a")).name() == "std.lookup_join"
    with pytest.raises(ConfigError, match="nobody waits") as raised:
        make(Shelf(shelf="a", patience=-1))
    assert raised.value.field == "table.config.patience"
    with pytest.raises(ConfigError, match=r"config of a google\.protobuf\.Struct") as raised:
        make(struct_pb2.Struct())
    assert raised.value.field == "table.config"
