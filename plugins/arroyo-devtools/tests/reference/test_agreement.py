"""The schema of a config and the planner's reader agree: nothing that the planner reads is marked in an editor."""

import jsonschema
import pytest
import yaml
from arroyo_devtools.schema import describe_operators
from arroyo_devtools.schema.field_docs import is_any_value, offering_hook
from arroyo_formats import is_chosen, read_choice
from google.protobuf import json_format, struct_pb2

from arroyo_core.errors import ConfigError, Location
from arroyo_core.pipeline.config import read_config
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.field_options import writable_fields
from arroyo_core.pipeline.loader import load_document
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.plugin import installed_plugins

OPERATORS = describe_operators(installed_plugins())
AT = Location("p.yaml", 1, 1)
#: What people write, right and wrong, wherever it fits. Not 017 and 0x10: numbers to an editor, texts to the planner.
VALUES = [
    *("1", "0", "-1", "+1", "1.0", "1.5", ".5", "1e6", "1e400", "1_000", "4294967296", "18446744073709551616"),
    *(
        '"123"',
        '"1.5"',
        ".inf",
        '".inf"',
        "NaN",
        "10s",
        "0s",
        '"0"',
        "500ms",
        "1.5 h",
        "10",
        "10 parsecs",
        "0.0",
        "-5s",
    ),
    *("1GIB", "64MiB", "10 MB", "4096", "true", "false", "True", "no", '"true"', "null", "~", "text", '""', '" "'),
    *('"${NUMBER}"', '"${WORD}"', '"a ${WORD:-x} b"', '"$$"', '"${}"', '"a$b"', "json", "JSON", "fail", "FAIL", "last"),
    *("left", "none", "2026-01-31", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.5+01:00", "aGVsbG8="),
    *("[]", "[a]", "[1]", '["1", b]', "[null]", "{}", "{a: b}", "{a: 1}", "{a: null}", "[{}]", "[[a]]", "{path: a}"),
    *("[{left: a}]", "[{function: count}]", "[{name: a, sql: b}]", "[{column: a, descending: true}]", "{left: a}"),
]
ENVIRONMENT = {"NUMBER": "12", "WORD": "hunter2"}


def planner_accepts(text, message_type):
    """Whether the planner reads what is written; what is not written does not matter here."""
    mistakes = Mistakes()
    value = load_document(text, file="p.yaml", environment=Environment(ENVIRONMENT), mistakes=mistakes)
    read_config(value, message_type, at=AT, what="the config", mistakes=mistakes)
    return all("the config needs the field" in mistake.message for mistake in mistakes.sorted())


def connector_accepts(descriptor, meaning):
    """Whether a connector takes the value of a field in which the planner takes any: a name, a mapping, or nothing."""
    if offering_hook(descriptor) != "arroyo_format":
        return not is_any_value(descriptor) or isinstance(meaning, str | dict)
    value = json_format.ParseDict(meaning, struct_pb2.Value())
    try:
        return not is_chosen(value) or bool(read_choice(value))
    except ConfigError:
        return False


@pytest.fixture(scope="module")
def read_values(editor_loader):
    """The values as an editor reads them."""
    return [(value, yaml.load(value, editor_loader)) for value in VALUES]


@pytest.mark.parametrize("name", OPERATORS)
def test_every_value_that_the_planner_reads_is_accepted(name, schema, editor_loader, read_values):
    doc = OPERATORS[name]
    conditions = schema["definitions"]["node"]["allOf"]
    (then,) = (each["then"] for each in conditions if each["if"]["properties"]["operator"]["const"] == name)
    validator = jsonschema.Draft7Validator({**then["properties"]["config"], "definitions": schema["definitions"]})
    nodes = yaml.load(doc.text.example, editor_loader)
    (base,) = (node.get("config", {}) for node in nodes if node["operator"] == name)
    wrong, verdicts = [], set()
    for field, descriptor in writable_fields(doc.config_type.DESCRIPTOR).items():
        oneof = descriptor.containing_oneof
        excluded = [] if oneof is None else [each.name for each in oneof.fields]
        others = {key: value for key, value in base.items() if key not in excluded}
        for value, meaning in read_values:
            is_valid = validator.is_valid({**others, field: meaning})
            verdicts.add(is_valid)
            if is_valid or not planner_accepts(f"{field}: {value}", doc.config_type):
                continue
            if connector_accepts(descriptor, meaning):
                wrong.append(f"{field}: {value}")
    assert wrong == []
    # There are values that fit and values that do not, or this would show nothing.
    assert not doc.fields or verdicts == {True, False}
