"""The JSON Schema accepts what the planner accepts, and refuses what can be refused without planning."""

import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from arroyo_testing.cases import files
from arroyo_testing.cases import schema as case_schema
from arroyo_testing.cases import spec as cases

from arroyo_core.pipeline import file_keys, parameters

ROOT = Path(__file__).resolve().parents[4]
BROKEN = sorted((ROOT / "tests" / "broken").glob("*.yaml"))
PIPELINES = sorted(
    path
    for folder in ("examples", "tests/golden/pipelines", "tests/nexmark/udfs")
    for path in (ROOT / folder).rglob("*.yaml")
    # Tests beside a pipeline, and parts that are included, are files of another shape.
    if re.search(r"^nodes:", path.read_text(encoding="utf-8"), re.MULTILINE)
)
TEST_FILES = sorted((ROOT / "examples").rglob("*_test.yaml"))
#: Without the pages that add a key to pipeline files, and a format.
PAGES = sorted(
    {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("plugins/[!_]*/README.md")}
    - {ROOT / "docs" / "hooks.md", ROOT / "docs" / "write-a-format.md"}
)

COLUMNS = "the columns of a stream are known when the pipeline is planned"
GRAPH = "it takes the whole graph, not one node"
#: Broken files that a schema cannot refuse, and why.
PLANNER_ONLY = {
    "bad_expression": "SQL is a text to a schema",
    "cycle": GRAPH,
    "dangling_node": GRAPH,
    "no_such_file": "the files are looked for when the pipeline is planned",
    "octal_number": "in YAML 1.2, which editors read, 017 is the number 17",
    "own_output": GRAPH,
    "predicate_is_no_condition": COLUMNS,
    "secret_for_number": "what a variable holds is known when the file is read",
    "secret_in_expression": "what a variable holds is known when the file is read",
    "sink_with_consumers": GRAPH,
    "taken_id": GRAPH,
    "udf_unpinned": "whether a bundle is there, or remote, is known when it is opened",
    "union_of_different_columns": COLUMNS,
    "unknown_column": COLUMNS,
    "unknown_column_of_second_expression": COLUMNS,
    "unknown_input": GRAPH,
    "unknown_key_column": COLUMNS,
    "unset_variable": "which variables are set is known when the file is read",
}


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_broken_files_are_refused_where_a_schema_can_see_it(path, problems):
    try:
        is_refused = bool(problems(path.read_bytes()))
    except (yaml.YAMLError, UnicodeDecodeError):
        is_refused = True
    assert is_refused == (path.stem not in PLANNER_ONLY)


def test_what_only_the_planner_sees_is_among_the_broken_files():
    assert set(PLANNER_ONLY) <= {path.stem for path in BROKEN}


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_are_accepted(path, problems):
    assert problems(path.read_text(encoding="utf-8")) == []


def test_there_are_examples():
    assert len(PIPELINES) > 50
    assert len(TEST_FILES) > 1


@pytest.mark.parametrize("path", TEST_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_of_tests_are_accepted(path, editor_loader):
    document = yaml.load(path.read_text(encoding="utf-8"), editor_loader)
    validator = jsonschema.Draft7Validator(case_schema.case_file_schema())
    assert [error.message for error in validator.iter_errors(document)] == []
    assert not validator.is_valid({**document, "test": []})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pipelines_in_the_docs_are_accepted(page, problems):
    for block in re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        if re.match(r"- id: ", block):
            block = f"name: example\nnodes:\n{block}"
        if re.search(r"^name:", block, re.MULTILINE) and re.search(r"^nodes:", block, re.MULTILINE):
            # What is included has files of its own, and `...` stands for what is left out.
            assert "!include" in block or "..." in block or problems(block) == [], block


def test_the_sections_have_the_keys_that_the_reader_accepts(schema):
    sections = schema["properties"]
    tests = sections["tests"]["items"]["properties"]
    (parameter,) = sections["parameters"]["patternProperties"].values()
    assert tuple(sections) == (*file_keys.PIPELINE.names, "tests")
    assert tuple(sections["checkpoint"]["properties"]) == file_keys.CHECKPOINT.names
    assert tuple(sections["udfs"]["items"]["properties"]) == file_keys.UDF.names
    assert tuple(schema["definitions"]["node"]["properties"]) == file_keys.NODE.names
    assert set(parameter["properties"]) == set(parameters._KEYS)
    assert set(tests) == set(cases.CASE_KEYS)
    assert set(tests["steps"]["items"]["properties"]) == set(cases.STEP_KEYS)
    assert tuple(case_schema.case_file_schema()["properties"]) == files._KEYS


NODES = """
nodes:
  - {id: bids, operator: nexmark.source, config: {events: 1000}}
  - {id: out, operator: std.blackhole, inputs: [bids]}
"""
FILTER = "name: x\nnodes:\n  - {{id: a, operator: std.filter, inputs: [b], config: {{{}}}}}\n"
WINDOW = "name: x\nnodes:\n  - {{id: a, operator: std.tumbling_window, inputs: [b], config: {{{}}}}}\n"
NEXMARK = "name: x\nnodes:\n  - {{id: a, operator: nexmark.source, config: {{{}}}}}\n"
SOURCE = "name: x\nnodes:\n  - {{id: a, operator: filesystem.source, config: {{{}}}}}\n"


@pytest.mark.parametrize(
    "text",
    [
        f"name: x\nparallelism: '2'{NODES}",
        f'name: "${{NAME}}"\nparallelism: "${{WIDTH:-2}}"{NODES}',
        f"name: x\nparallelism: 1e1{NODES}",
        f"name: x\ncheckpoint:{NODES}",
        f"name: x\ncheckpoint: {{url: ./state, interval: 1.5h, rows: 10, bytes: 4096, keep:}}{NODES}",
        f"name: x\nparameters: {{rate: {{default: 10, type: int}}, who: }}{NODES}",
        f"name: x\nudfs: [{{url: ./a.whl, sha256: {'ab' * 32}, as: geo}}]{NODES}",
        FILTER.format('predicate: "price > 100"'),
        FILTER.format('predicate: "$$1 and ${PREDICATE:-true}", on_error: null'),
        FILTER.format("predicate: x, on_error: dead_letter"),
        FILTER.format("predicate: x, onError: FAIL"),
        FILTER.format("predicate: x, on_error: 3"),
        WINDOW.format("size: 10s, allowed_lateness: 0, late: side_output"),
        WINDOW.format('size: "${SIZE}"'),
        WINDOW.format("size: 10s, allowedLateness: 500 ms, aggregates: [{function: my_own, columns: [a, b]}]"),
        NEXMARK.format("events: '1000', rate: .5, base_time: 2026-01-31T12:00:00+01:00, avg_bid_size: 1KiB"),
        SOURCE.format("path: ./a, format: PARQUET, schema: {id: int64}, storage_options: {key: k}"),
        SOURCE.format("path: ./a, schema: [{name: id, type: int64}], split_size: 64MiB"),
    ],
)
def test_every_way_of_writing_that_the_reader_accepts_is_accepted(text, problems):
    assert problems(text) == []


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (f"name: x\nparallelism: 5000{NODES}", "parallelism"),
        (f"name: x\ncheckpoint: {{interval: 10}}{NODES}", "checkpoint.interval"),
        (f"name: x\ncheckpoint: {{interval: 0s}}{NODES}", "checkpoint.interval"),
        (f"name: x\nparameters: {{rate: {{typ: int}}}}{NODES}", "parameters.rate"),
        (f"name: x\ntests: [{{rows: {{}}}}]{NODES}", "tests.0"),
        (f"name: x\ntests: [{{name: a, steps: [crush]}}]{NODES}", "tests.0.steps.0"),
        (FILTER.format("predicate: ''"), "nodes.0.config.predicate"),
        (FILTER.format("predicate: x, on_error: ignore"), "nodes.0.config.on_error"),
        (WINDOW.format("size: 0s"), "nodes.0.config.size"),
        (WINDOW.format("size: 10s, allowed_lateness: 5"), "nodes.0.config.allowed_lateness"),
        (WINDOW.format("size: 10s, aggregates: [{column: a}]"), "nodes.0.config.aggregates.0"),
        (WINDOW.format("size: 10s, aggregates: [{function: sum, percentile: 2}]"), "nodes.0.config.aggregates.0"),
        (NEXMARK.format("events: -1"), "nodes.0.config.events"),
        (NEXMARK.format("fields: [1]"), "nodes.0.config.fields.0"),
        (SOURCE.format("path: ./a, format: xml"), "nodes.0.config.format"),
        (SOURCE.format("path: ./a, files: [{path: b}]"), "nodes.0.config"),
        (SOURCE.format("path: ./a, schema: {id: }"), "nodes.0.config.schema.id"),
    ],
)
def test_a_mistake_is_marked_at_its_place(text, where, problems):
    (problem,) = problems(text)
    assert problem.startswith(where)


def test_an_operator_of_a_plugin_that_is_not_installed_is_the_only_mistake(problems):
    text = "name: x\nnodes:\n  - {id: a, operator: acme.enrich, inputs: [b], config: {anything: [1]}}\n"
    (problem,) = problems(text)
    assert problem.startswith("nodes.0.operator")


@pytest.mark.parametrize(
    ("config", "is_valid"),
    [
        ("{expression: at, max_lateness: 5s}", False),
        ('{expression: "", max_lateness: 5s}', True),
        ("{expression: null, max_lateness: 5s}", True),
        ("{expression: at}", True),
    ],
)
def test_fields_that_exclude_each_other_are_told_where_both_are_written(problems, config, is_valid):
    node = f"  - {{id: w, operator: std.watermark, inputs: [s], config: {config}}}"
    assert (problems(f"name: x\nnodes:\n{node}\n") == []) == is_valid


@pytest.mark.parametrize(
    ("table", "is_refused"),
    [
        ("{lookup: kafka.lookup, config: {bootstrap_servers: b, topic: t, format: json, schema: {id: int64}}}", False),
        ("{lookup: kafka.lookup, config: {bootstrap_servers: b, topci: t, format: json}}", True),
        ("{lookup: kafka.lookup, config: {bootstrap_servers: b}}", True),
        ("{lookup: elsewhere.lookup, config: {anything: 7}}", False),
    ],
)
def test_the_config_of_a_lookup_has_the_fields_of_that_lookup(problems, table, is_refused):
    node = f"{{id: n, operator: std.lookup_join, inputs: [m], config: {{on: [{{left: id}}], table: {table}}}}}"
    assert bool(problems(f"name: p\nnodes: [{node}]\n".encode())) == is_refused
