"""A plugin from anywhere is described as ours are: by the one command that its author runs, without protoc later."""

import importlib

import jsonschema
import pytest
from arroyo_devtools.schema import Kind, describe_operator, pipeline_schema
from google.protobuf import struct_pb2

from arroyo_core.api import OperatorConstructor, Registry
from arroyo_core.cli.main import main
from arroyo_core.errors import PluginError
from arroyo_core.pipeline.comments import FILE_NAME
from arroyo_core.plugin import PluginSet

PROTO = """\
syntax = "proto3";

package acme_reference;

import "arroyo_core/proto/options.proto";

// How eager it is.
enum Mood {
  MOOD_UNSPECIFIED = 0;
  // Does it at once.
  MOOD_EAGER = 1;
  // Takes its time.
  MOOD_LAZY = 2;
}

// A point, which may have another one inside.
message Point {
  // From the left.
  double x = 1;
  // Inside it.
  Point inner = 2;
}

// `acme.tag`: puts a tag on rows.
//
// State: none.
message TagConfig {
  // The tag.
  string tag_name = 1 [(arroyo_core.required) = true];
  // How. Default: eager.
  Mood mood = 2;
  // Where.
  repeated Point points = 3;
  oneof place {
    // By name.
    string city = 4;
    // By number.
    int32 zip = 5 [(arroyo_core.least) = 1000, (arroyo_core.greatest) = 9999];
  }
  map<string, int64> weights = 6;
}
"""


class TagConstructor(OperatorConstructor):
    inputs = (1, 1)

    def with_config(self, config, registry):
        raise NotImplementedError


class StructConstructor(OperatorConstructor):
    """Does whatever it is told.

    Output: nothing.
    """

    config_type = struct_pb2.Struct

    def with_config(self, config, registry):
        raise NotImplementedError


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A package made by `arroyo proto`, as docs/write-a-plugin.md says."""
    source = tmp_path_factory.mktemp("source")
    (source / "acme_reference").mkdir()
    (source / "acme_reference" / "__init__.py").touch()
    (source / "acme_reference" / "config.proto").write_text(PROTO)
    assert main(["proto", str(source)]) == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(source)
        yield importlib.import_module("acme_reference.config_pb2")


@pytest.fixture
def plugins(package):
    registry = Registry()
    constructor = TagConstructor()
    constructor.config_type = package.TagConfig
    registry.add("acme.tag", constructor)
    registry.add("acme.any", StructConstructor())
    return PluginSet(registry, [])


def test_comments_come_from_the_descriptor_set(plugins):
    doc = describe_operator("acme.tag", plugins)
    assert doc.text.summary == "Puts a tag on rows."
    assert doc.kind is Kind.OPERATOR
    fields = {field.name: field for field in doc.fields}
    assert fields["tag_name"].description == "The tag."
    assert [choice.description for choice in fields["mood"].choices] == ["Does it at once.", "Takes its time."]
    assert fields["zip"].range == "from 1000 to 9999"
    assert fields["weights"].type == "mapping of string to integer"


def test_a_message_that_holds_itself_is_described_once(plugins):
    (points,) = (field for field in describe_operator("acme.tag", plugins).fields if field.name == "points")
    assert [field.name for field in points.fields] == ["x", "inner"]
    assert points.fields[1].fields == ()


def test_any_mapping_is_described_by_the_constructor(plugins):
    doc = describe_operator("acme.any", plugins)
    assert doc.text.summary == "Does whatever it is told."
    assert doc.takes_anything


@pytest.mark.parametrize(
    ("config", "is_valid"),
    [
        ({"tag_name": "a"}, True),
        ({"tagName": "a"}, True),
        ({"tag_name": "a", "mood": "MOOD_LAZY"}, True),
        ({"tag_name": "a", "mood": "lazy", "weights": {"a": "1"}}, True),
        ({"tag_name": "a", "points": [{"x": 1, "inner": {"x": 2.5, "inner": None}}]}, True),
        ({"tag_name": "a", "city": "Rome", "zip": None}, True),
        ({}, False),
        ({"tag_name": "a", "mood": "unspecified"}, False),
        ({"tag_name": "a", "points": [{"inner": {"y": 1}}]}, False),
        ({"tag_name": "a", "city": "Rome", "zip": 1000}, False),
        ({"tag_name": "a", "zip": 999}, False),
        ({"tag_name": "a", "weights": {"a": "b"}}, False),
    ],
)
def test_the_schema_follows_the_message(plugins, config, is_valid):
    validator = jsonschema.Draft7Validator(pipeline_schema(plugins))
    node = {"id": "a", "operator": "acme.tag", "inputs": ["b"], "config": config}
    assert validator.is_valid({"name": "x", "nodes": [node]}) == is_valid


def test_a_struct_takes_any_mapping(plugins):
    validator = jsonschema.Draft7Validator(pipeline_schema(plugins))
    node = {"id": "a", "operator": "acme.any", "config": {"deep": [{"x": 1}]}}
    assert validator.is_valid({"name": "x", "nodes": [node]})
    assert not validator.is_valid({"name": "x", "nodes": [{**node, "config": [1]}]})


def test_without_any_plugin_there_is_a_schema_of_the_file():
    schema = pipeline_schema(PluginSet(Registry(), []))
    jsonschema.Draft7Validator.check_schema(schema)
    assert not jsonschema.Draft7Validator(schema).is_valid({"name": "x", "nodes": [{"id": "a", "operator": "b.c"}]})


def test_a_damaged_descriptor_set_is_named(tmp_path, monkeypatch):
    (tmp_path / "damaged_reference").mkdir()
    (tmp_path / "damaged_reference" / "__init__.py").touch()
    (tmp_path / "damaged_reference" / FILE_NAME).write_bytes(b"\xff\xff\xff")
    monkeypatch.syspath_prepend(tmp_path)
    constructor = StructConstructor()
    message = type(
        "Config", (), {"__module__": "damaged_reference.config_pb2", "DESCRIPTOR": struct_pb2.Struct.DESCRIPTOR}
    )
    constructor.config_type = message
    registry = Registry()
    registry.add("damaged.any", constructor)
    with pytest.raises(PluginError, match=r"descriptors\.binpb of the package damaged_reference"):
        describe_operator("damaged.any", PluginSet(registry, []))
