"""What the plugins of this repository say of themselves is complete, and true."""

import re

import pytest
import yaml
from arroyo_devtools.schema import describe_operators
from arroyo_devtools.schema.prose import SECTIONS
from google.protobuf.descriptor import FieldDescriptor

from arroyo_core.errors import InvalidPipelineError
from arroyo_core.pipeline.field_options import has_option, limit, writable_fields
from arroyo_core.plugin import installed_plugins
from arroyo_core.proto import options_pb2
from arroyo_core.runtime.tables import declared_tables

from .conftest import ASKING

OPERATORS = describe_operators(installed_plugins())
PLANNED = sorted(OPERATORS.keys() - ASKING)


def walk(fields, path=""):
    for field in fields:
        yield f"{path}{field.name}", field
        yield from walk(field.fields, f"{path}{field.name}.")


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_field_and_choice_is_described(name):
    doc = OPERATORS[name]
    assert doc.text.summary.endswith(".")
    assert {title for title, _ in doc.text.sections} >= {"Output", "State"}
    assert doc.inputs is not None
    assert [path for path, field in walk(doc.fields) if not field.description] == []
    assert [
        f"{path}: {choice.name}"
        for path, field in walk(doc.fields)
        for choice in field.choices
        if not choice.description
    ] == []


@pytest.mark.parametrize("name", OPERATORS)
def test_the_example_has_the_operator_as_its_schema_says(name, problems, complete):
    example = complete(OPERATORS[name].text.example)
    assert f"operator: {name}" in example
    assert problems(example) == []


@pytest.mark.parametrize("name", PLANNED)
def test_the_example_is_a_valid_pipeline_of_the_operator(name, plan_example):
    plan = plan_example(OPERATORS[name].text.example)
    assert name in {node.operator for node in plan.nodes.values()}


@pytest.mark.parametrize("name", PLANNED)
def test_inputs_and_tables_are_those_of_the_operator(name, plan_example, plugins, functions):
    doc = OPERATORS[name]
    node = next(node for node in plan_example(doc.text.example).nodes.values() if node.operator == name)
    registry = plugins.registry.with_udfs(functions)
    made = plugins.constructor(name).with_config(doc.config_type.FromString(node.config), registry)
    expected = (0, 0) if made.source is not None else made.operator.input_count()
    assert doc.inputs == expected
    assert (doc.kind == "sink") == (made.operator is not None and made.operator.is_sink())
    state = dict(doc.text.sections)["State"]
    tables = declared_tables(made.inner, node.input_schemas)
    assert {table for table in tables if f"`{table}`" not in state} == set()
    if not tables:
        assert state.lower().startswith("none") or "none for" in state


WITH_SIDE_OUTPUTS = [name for name, doc in OPERATORS.items() if "Side outputs" in dict(doc.text.sections)]


@pytest.mark.parametrize("name", WITH_SIDE_OUTPUTS)
def test_side_outputs_can_be_read(name, plan_example):
    doc = OPERATORS[name]
    text = dict(doc.text.sections)["Side outputs"]
    names = re.findall(r"`(\w+)`", text.partition(", with ")[0])
    key, value = re.search(r"with `(\w+): (\w+)`", text).groups()
    nodes = yaml.safe_load(doc.text.example.replace("on: [", "'on': ["))
    (node,) = (node for node in nodes if node["operator"] == name)
    node["config"][key] = value
    readers = [
        {"id": f"read_{output}", "operator": "std.blackhole", "inputs": [f"{node['id']}.{output}"]} for output in names
    ]
    assert names
    plan_example(yaml.safe_dump([*nodes, *readers], sort_keys=False).replace("'on':", "on:"))


def test_operators_with_a_side_output_say_so():
    assert {"std.filter", "std.tumbling_window", "std.join", "std.async_udf"} <= set(WITH_SIDE_OUTPUTS)


def bounded_fields():
    for name, doc in OPERATORS.items():
        for field in writable_fields(doc.config_type.DESCRIPTOR).values():
            for option, step in ((options_pb2.least, -1), (options_pb2.greatest, 1)):
                bound = limit(field, option)
                if bound is not None:
                    yield pytest.param(name, field, bound + step, id=f"{name}-{field.name}-{option.name}")


@pytest.mark.parametrize(("name", "field", "value"), [*bounded_fields()])
def test_what_is_out_of_a_declared_range_is_refused(name, field, value, plan_example, problems, complete):
    doc = OPERATORS[name]
    unit = "us" if has_option(field, options_pb2.duration) else ""
    is_whole = field.cpp_type not in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT)
    assert is_whole
    nodes = yaml.safe_load(doc.text.example.replace("on: [", "'on': ["))
    (node,) = (node for node in nodes if node["operator"] == name)
    node["config"][field.name] = f"{value}{unit}" if unit else value
    text = yaml.safe_dump(nodes, sort_keys=False).replace("'on':", "on:")
    with pytest.raises(InvalidPipelineError, match=f"'{field.name}'"):
        plan_example(text)
    assert any(f".{field.name}: " in problem for problem in problems(complete(text)))


def test_sections_are_in_one_order():
    for doc in OPERATORS.values():
        titles = [title for title, _ in doc.text.sections]
        assert titles == [title for title in SECTIONS if title in titles]


def test_the_aggregates_that_are_proposed_are_those_there_are():
    from arroyo_std.aggregates.registry import FUNCTIONS

    (field,) = (field for path, field in walk(OPERATORS["std.tumbling_window"].fields) if path == "aggregates.function")
    assert {choice.name for choice in field.choices} == set(FUNCTIONS)


def test_the_formats_that_may_be_chosen_are_those_there_are():
    from arroyo_filesystem.sink_settings import IfExists, Updating
    from arroyo_formats import BadData, file_formats, installed_formats

    def choices(operator, field):
        return {
            choice.name for path, doc in walk(OPERATORS[operator].fields) if path == field for choice in doc.choices
        }

    assert choices("filesystem.source", "format") == choices("filesystem.sink", "format") == set(installed_formats())
    assert choices("filesystem.source", "bad_data") == set(BadData)
    compressions = {name for files in file_formats().values() for name in files.compressions}
    assert choices("filesystem.sink", "compression") <= compressions
    assert choices("filesystem.sink", "if_exists") == set(IfExists)
    assert choices("filesystem.sink", "updating") == set(Updating) - {""}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("{path: ./orders, format: xml}", "there is no format 'xml'"),
        ("{path: ./orders, bad_data: skip}", "'bad_data' must be one of fail, drop, dead_letter"),
        ("{path: ./orders, files: [{path: a}]}", "has no field 'files'"),
        ("{path: ./orders, batch_rows: 16777217}", "'batch_rows' must be at most 16777216"),
    ],
)
def test_what_a_field_declares_is_checked_by_the_planner(config, message, plan_example):
    with pytest.raises(InvalidPipelineError, match=re.escape(message)):
        plan_example(f"- {{id: a, operator: filesystem.source, config: {config}}}")


@pytest.mark.parametrize("text", ["CSV", "csv", '""', "${NO_SUCH:-}"])
def test_a_choice_may_be_in_any_case_or_empty(text, plan_example):
    plan_example(
        f'- {{id: a, operator: filesystem.source, config: {{path: ./orders, format: "{text.strip(chr(34))}"}}}}'
    )
