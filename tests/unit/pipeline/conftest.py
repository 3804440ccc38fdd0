"""Small operators of a plugin `t`, registered by hand: the planner is tested without any installed plugin."""

import pyarrow as pa
import pytest
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    struct_pb2,
    text_format,
    timestamp_pb2,
    wrappers_pb2,
)

from arroyo_core.api import (
    ArrowOperator,
    ArroyoSchema,
    ConstructedOperator,
    DisplayableOperator,
    OperatorConstructor,
    Origin,
    Registry,
    SourceFinishType,
    SourceOperator,
)
from arroyo_core.errors import ConfigError, InvalidPipelineError
from arroyo_core.pipeline import plan_text
from arroyo_core.plugin import PluginReport, PluginSet
from arroyo_core.proto import options_pb2

#: Every kind of field that the YAML form knows. Written as a descriptor, so that tests need no compiler.
KITCHEN = """
name: "tests/kitchen.proto" package: "tests_graph" syntax: "proto3"
dependency: [
  "arroyo_core/proto/options.proto", "google/protobuf/struct.proto", "google/protobuf/duration.proto",
  "google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"
]
enum_type { name: "BadData" value { name: "BAD_DATA_UNSPECIFIED" number: 0 } value { name: "BAD_DATA_FAIL" number: 1 }
  value { name: "BAD_DATA_DROP" number: 2 } }
enum_type { name: "Color" value { name: "red" number: 0 } value { name: "green" number: 1 } }
message_type { name: "Named"
  field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "name" }
  field { name: "sql" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "sql" } }
message_type { name: "Nested"
  field { name: "column" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "column"
    options { [arroyo_core.required]: true } }
  field { name: "depth" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL json_name: "depth" } }
message_type { name: "Kitchen"
  field { name: "text" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "text" }
  field { name: "small" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL json_name: "small" }
  field { name: "count" number: 3 type: TYPE_UINT64 label: LABEL_OPTIONAL json_name: "count" }
  field { name: "ratio" number: 4 type: TYPE_DOUBLE label: LABEL_OPTIONAL json_name: "ratio" }
  field { name: "single" number: 5 type: TYPE_FLOAT label: LABEL_OPTIONAL json_name: "single" }
  field { name: "flag" number: 6 type: TYPE_BOOL label: LABEL_OPTIONAL json_name: "flag" }
  field { name: "data" number: 7 type: TYPE_BYTES label: LABEL_OPTIONAL json_name: "data" }
  field { name: "bad_data" number: 8 type: TYPE_ENUM type_name: ".tests_graph.BadData" label: LABEL_OPTIONAL
    json_name: "badData" }
  field { name: "color" number: 9 type: TYPE_ENUM type_name: ".tests_graph.Color" label: LABEL_OPTIONAL
    json_name: "color" }
  field { name: "max_lateness" number: 10 type: TYPE_INT64 label: LABEL_OPTIONAL json_name: "maxLateness"
    options { [arroyo_core.duration]: true } }
  field { name: "max_size" number: 11 type: TYPE_INT64 label: LABEL_OPTIONAL json_name: "maxSize"
    options { [arroyo_core.size]: true } }
  field { name: "expressions" number: 12 type: TYPE_MESSAGE type_name: ".tests_graph.Named" label: LABEL_REPEATED
    json_name: "expressions" options { [arroyo_core.ordered_map]: true } }
  field { name: "nested" number: 13 type: TYPE_MESSAGE type_name: ".tests_graph.Nested" label: LABEL_OPTIONAL
    json_name: "nested" }
  field { name: "many" number: 14 type: TYPE_MESSAGE type_name: ".tests_graph.Nested" label: LABEL_REPEATED
    json_name: "many" }
  field { name: "words" number: 15 type: TYPE_STRING label: LABEL_REPEATED json_name: "words" }
  field { name: "by_name" number: 16 type: TYPE_MESSAGE type_name: ".tests_graph.Kitchen.ByNameEntry"
    label: LABEL_REPEATED json_name: "byName" }
  field { name: "by_number" number: 17 type: TYPE_MESSAGE type_name: ".tests_graph.Kitchen.ByNumberEntry"
    label: LABEL_REPEATED json_name: "byNumber" }
  field { name: "left" number: 18 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 json_name: "left" }
  field { name: "right" number: 19 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 json_name: "right" }
  field { name: "anything" number: 20 type: TYPE_MESSAGE type_name: ".google.protobuf.Value" label: LABEL_OPTIONAL
    json_name: "anything" }
  field { name: "settings" number: 21 type: TYPE_MESSAGE type_name: ".google.protobuf.Struct" label: LABEL_OPTIONAL
    json_name: "settings" }
  field { name: "items" number: 22 type: TYPE_MESSAGE type_name: ".google.protobuf.ListValue" label: LABEL_OPTIONAL
    json_name: "items" }
  field { name: "wait" number: 23 type: TYPE_MESSAGE type_name: ".google.protobuf.Duration" label: LABEL_OPTIONAL
    json_name: "wait" }
  field { name: "since" number: 24 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" label: LABEL_OPTIONAL
    json_name: "since" }
  field { name: "limit" number: 25 type: TYPE_MESSAGE type_name: ".google.protobuf.Int32Value" label: LABEL_OPTIONAL
    json_name: "limit" }
  field { name: "is_on" number: 26 type: TYPE_MESSAGE type_name: ".google.protobuf.BoolValue" label: LABEL_OPTIONAL
    json_name: "isOn" }
  oneof_decl { name: "side" }
  nested_type { name: "ByNameEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "key" }
    field { name: "value" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL json_name: "value" } }
  nested_type { name: "ByNumberEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL json_name: "key" }
    field { name: "value" number: 2 type: TYPE_MESSAGE type_name: ".tests_graph.Nested" label: LABEL_OPTIONAL
      json_name: "value" } }
}
message_type { name: "Misused"
  field { name: "lapse" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "lapse"
    options { [arroyo_core.duration]: true } } }
"""

COLUMNS = pa.schema(
    [("k", pa.int64()), ("name", pa.string()), ("at", pa.timestamp("us", tz="UTC")), ("tags", pa.list_(pa.string()))]
)


def kitchen_messages():
    # Importing a module is what makes its file known to the pool.
    known = {module.DESCRIPTOR.name for module in (duration_pb2, options_pb2, struct_pb2, timestamp_pb2, wrappers_pb2)}
    file = text_format.Parse(KITCHEN, descriptor_pb2.FileDescriptorProto())
    assert known == set(file.dependency)
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    names = ("Kitchen", "Misused")
    return [message_factory.GetMessageClass(pool.FindMessageTypeByName(f"tests_graph.{name}")) for name in names]


Kitchen, Misused = kitchen_messages()


class Source(SourceOperator):
    def name(self):
        return "t.source"

    def output_schema(self, inputs):
        return ArroyoSchema(COLUMNS, timestamp_column="at")

    def run(self, ctx, collector):
        return SourceFinishType.FINAL


class Map(ArrowOperator):
    """Passes its input on; `settings` is its config as a dict."""

    def __init__(self, settings):
        self.settings = settings

    def name(self):
        return "t.map"

    def output_schema(self, inputs):
        if "column" in self.settings and self.settings["column"] not in inputs[0].names:
            column = self.settings["column"]
            raise ConfigError(f"no column {column!r}", field="column", value=column, allowed=inputs[0].names)
        return inputs[0]

    def process_batch(self, batch, ctx, collector):
        collector.collect(batch)

    def display(self):
        return DisplayableOperator(self.name(), [(name, str(self.settings[name])) for name in sorted(self.settings)])


class KeyBy(Map):
    def keys(self):
        return tuple(self.settings.get("keys", ()))

    def output_schema(self, inputs):
        return inputs[0].with_keys(self.keys()) if set(self.keys()) <= set(inputs[0].names) else inputs[0]

    def routing_keys(self, inputs):
        return [self.keys()]


class Union(Map):
    def input_count(self):
        most = self.settings.get("most")
        return (2, int(most) if most else None)


class Sink(Map):
    def is_sink(self):
        return True


class Faulty(Map):
    """Fails in the method that its config names."""

    def output_schema(self, inputs):
        if self.settings.get("step") == "schema":
            raise RuntimeError(f"cannot work with {self.settings.get('secret')}")
        return "no schema" if self.settings.get("step") == "answer" else inputs[0]

    def routing_keys(self, inputs):
        return [] if self.settings.get("step") == "routing" else [None]


class PanicError(BaseException):
    """Like the panics of libraries written in Rust: no Exception."""


class Constructor(OperatorConstructor):
    config_type = struct_pb2.Struct

    def __init__(self, operator):
        self.operator = operator

    def with_config(self, config, registry):
        if issubclass(self.operator, SourceOperator):
            return ConstructedOperator.from_source(self.operator())
        settings = {name: list(value) if hasattr(value, "values") else value for name, value in config.items()}
        if settings.get("step") == "panic":
            raise PanicError("index out of bounds")
        if settings.get("step") == "nothing":
            return None
        return ConstructedOperator.from_operator(self.operator(settings))


class KitchenConstructor(OperatorConstructor):
    def __init__(self, config_type):
        self.config_type = config_type
        self.config = None

    def with_config(self, config, registry):
        self.config = config
        return ConstructedOperator.from_operator(Map({}))


class ResolvingConstructor(OperatorConstructor):
    """Resolves `path` and counts; `is_former` does so in `with_config`, as constructors did before `resolve`."""

    config_type = struct_pb2.Struct

    def __init__(self, *, is_former=False):
        self.is_former = is_former
        self.resolved = 0

    def resolve(self, config):
        self.resolved += 1
        if self.is_former:
            return config
        if "path" not in config:
            raise ConfigError("path is needed", field="path")
        resolved = struct_pb2.Struct()
        resolved.CopyFrom(config)
        resolved["path"] = "/absolute/" + config["path"]
        return resolved

    def with_config(self, config, registry):
        if self.is_former:
            config["path"] = "/absolute/" + config["path"]
        return ConstructedOperator.from_operator(Map({"path": config["path"]}))


@pytest.fixture
def kitchen_type():
    return Kitchen


@pytest.fixture
def plugins():
    registry = Registry()
    operators = {"source": Source, "map": Map, "key_by": KeyBy, "union": Union, "sink": Sink, "faulty": Faulty}
    with registry.registering(Origin("t-plugin", "1.0")):
        for name, operator in operators.items():
            registry.add(f"t.{name}", Constructor(operator))
        registry.add("t.resolving", ResolvingConstructor())
        registry.add("t.former", ResolvingConstructor(is_former=True))
        registry.add("t.kitchen", KitchenConstructor(Kitchen))
        registry.add("t.misused", KitchenConstructor(Misused))
    reports = [
        PluginReport("t", Origin("t-plugin", "1.0"), "t"),
        PluginReport("broken", Origin("broken-plugin", "2.0"), "broken", error="ImportError: no module named 'x'"),
        PluginReport("shut", Origin("shut-plugin", "3.0"), "shut", is_blocked=True),
    ]
    return PluginSet(registry, reports, {"t.claimed": "operator 't.claimed' is registered twice: by a 1 and by b 2"})


@pytest.fixture
def plan(plugins):
    """Plan YAML text; `environment` holds the variables."""

    def call(text, environment=None, parallelism=None):
        return plan_text(text, file="p.yaml", plugins=plugins, environment=environment or {}, parallelism=parallelism)

    return call


@pytest.fixture
def mistakes(plan):
    """The mistakes of YAML text, as errors."""

    def call(text, environment=None):
        with pytest.raises(InvalidPipelineError) as caught:
            plan(text, environment)
        return list(caught.value.errors)

    return call


@pytest.fixture
def nodes():
    """A pipeline of nodes `id operator inputs [config]`, written as flow mappings, one in each line from line 3 on."""

    def call(*rows, head="name: test"):
        lines = [head, "nodes:"]
        for node_id, operator, inputs, *more in rows:
            config = f", {more[0]}" if more else ""
            lines.append(f"  - {{id: {node_id}, operator: {operator}, inputs: [{inputs}]{config}}}")
        return "\n".join(lines) + "\n"

    return call
