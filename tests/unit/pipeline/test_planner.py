import pickle
import re
import subprocess
import sys

import pytest
from google.protobuf import struct_pb2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arroyo_core.api import Origin
from arroyo_core.errors import InvalidPipelineError
from arroyo_core.pipeline import CheckpointSpec, Routing, plan_pipeline, plan_text
from arroyo_core.pipeline.loader import split_lines


def under(error, text):
    """What is written at the place of an error, up to the next comma or bracket."""
    line = text.splitlines()[error.at.line - 1]
    return re.match(r"[^,\]}]*", line[error.at.column - 1 :])[0]


def test_a_pipeline_becomes_a_typed_plan(plan, nodes):
    text = nodes(("a", "t.source", ""), ("b", "t.key_by", "a", "config: {keys: [k]}"), ("c", "t.sink", "b"))
    made = plan("parallelism: 2\n" + text)
    assert made.job_id == "test"
    assert list(made.nodes) == ["a", "b", "c"]
    assert made.nodes["b"].origin == Origin("t-plugin", "1.0")
    assert made.nodes["b"].input_schemas == (made.nodes["a"].output_schema,)
    assert made.nodes["c"].output_schema.key_columns == ("k",)
    assert [(edge.source, edge.target, edge.routing, edge.keys) for edge in made.edges] == [
        ("a", "b", Routing.SHUFFLE, ("k",)),
        ("b", "c", Routing.FORWARD, ()),
    ]
    assert [chain.nodes for chain in made.chains] == [("a",), ("b", "c")]
    assert made.wave_count == 2


def test_a_plan_survives_pickling(plan, nodes):
    made = plan(nodes(("a", "t.source", ""), ("c", "t.sink", "a")))
    assert pickle.loads(pickle.dumps(made)) == made


def test_nodes_may_be_written_in_any_order(plan, nodes):
    text = nodes(("z", "t.sink", "y"), ("y", "t.union", "x, w"), ("x", "t.source", ""), ("w", "t.source", ""))
    assert list(plan(text).nodes) == ["x", "w", "y", "z"]


def test_one_input_may_be_written_without_a_list(plan):
    made = plan("name: t\nnodes:\n- {id: a, operator: t.source}\n- {id: b, operator: t.sink, inputs: a}\n")
    assert [edge.source for edge in made.edges] == ["a"]


@pytest.mark.parametrize(("override", "expected"), [(None, {"a": 3, "b": 5}), (2, {"a": 2, "b": 5})])
def test_a_nodes_own_parallelism_stays_when_the_pipelines_is_replaced(plan, nodes, override, expected):
    text = nodes(("a", "t.source", ""), ("b", "t.sink", "a", "parallelism: 5"), head="name: t\nparallelism: 3")
    made = plan(text, parallelism=override)
    assert {name: node.parallelism for name, node in made.nodes.items()} == expected
    assert made.edges[0].routing is Routing.REBALANCE


def test_parallelism_is_one_by_default(plan, nodes):
    assert plan(nodes(("a", "t.source", ""), ("b", "t.sink", "a"))).nodes["a"].parallelism == 1


@pytest.mark.parametrize("parallelism", [0, -1, 4097])
def test_an_impossible_override_is_refused(plan, nodes, parallelism):
    with pytest.raises(InvalidPipelineError, match="between 1 and 4096"):
        plan(nodes(("a", "t.source", ""), ("b", "t.sink", "a")), parallelism=parallelism)


def test_checkpoint_settings_are_read_with_units(plan, nodes):
    head = "name: t\ncheckpoint: {url: ./state, interval: 1m, rows: 5000000, bytes: 1GiB, keep: 3, timeout: 90s}"
    made = plan(nodes(("a", "t.source", ""), ("b", "t.sink", "a"), head=head))
    assert made.checkpoint == CheckpointSpec(
        url="./state", interval_ms=60_000, rows=5_000_000, bytes=2**30, keep=3, timeout_ms=90_000
    )


def test_the_environment_reaches_the_config_and_the_url(plan, nodes, plugins):
    head = 'name: "job-${STAGE}"\ncheckpoint: {url: "s3://${BUCKET}/state"}'
    text = nodes(
        ("a", "t.source", ""), ("b", "t.kitchen", "a", 'config: {text: "${WORD}"}'), ("c", "t.sink", "b"), head=head
    )
    made = plan(text, {"STAGE": "prod", "BUCKET": "acme", "WORD": "hunter2"})
    assert (made.job_id, made.checkpoint.url) == ("job-prod", "s3://acme/state")
    assert plugins.registry.constructors["t.kitchen"].config.text == "hunter2"
    assert "hunter2" not in repr(made)
    assert "acme" not in repr(made)


def test_all_phases_report_their_mistakes_in_the_order_of_the_file(mistakes, nodes):
    text = nodes(
        ("a", "t.source", ""),
        ("b", "t.mpa", "a"),
        ("c", "t.map", "x"),
        ("d", "t.kitchen", "a", "config: {txt: 1}"),
        ("d", "t.sink", "a"),
        head="name: a b\nparalelism: 1",
    )
    places = [under(error, text) for error in mistakes(text)]
    assert places == ["a b", "paralelism: 1", "t.mpa", "c", "x", "txt: 1", "d"]


def test_a_mistake_upstream_is_not_repeated_downstream(mistakes, nodes):
    rows = [("a", "t.source", ""), ("b", "t.map", "a", "config: {column: nme}")]
    rows += [("c", "t.map", "b", "config: {column: nme}"), ("d", "t.sink", "c")]
    (error,) = mistakes(nodes(*rows))
    assert (error.at.line, under(error, nodes(*rows))) == (4, "nme")
    assert error.suggestion == "name"


def test_independent_branches_are_both_typed(mistakes, nodes):
    rows = [
        ("a", "t.source", ""),
        ("b", "t.map", "a", "config: {column: x}"),
        ("c", "t.map", "a", "config: {column: y}"),
    ]
    rows += [("d", "t.union", "b, c"), ("e", "t.sink", "d")]
    assert [error.value for error in mistakes(nodes(*rows))] == ["x", "y"]


def test_a_cycle_is_named_along_the_flow(mistakes, nodes):
    rows = [
        ("a", "t.source", ""),
        ("b", "t.union", "a, d"),
        ("c", "t.map", "b"),
        ("d", "t.map", "c"),
        ("e", "t.sink", "d"),
    ]
    (error,) = mistakes(nodes(*rows))
    assert error.message == "the nodes form a cycle: b -> c -> d -> b"
    assert (error.at.line, under(error, nodes(*rows))) == (4, "d")


def test_a_misspelled_input_is_one_mistake(mistakes, nodes):
    text = nodes(("events", "t.source", ""), ("b", "t.sink", "evnts"))
    (error,) = mistakes(text)
    assert (error.message, error.suggestion) == ("there is no node 'evnts'", "events")
    assert under(error, text) == "evnts"


@pytest.mark.parametrize(
    ("inputs", "config", "expected"),
    [
        ("a", "{}", "t.union needs at least 2 inputs, but 1 is given"),
        ("", "{}", "t.union needs at least 2 inputs, but none is given"),
        ("a, a, a, a", "{most: 3}", "t.union needs 2 to 3 inputs, but 4 are given"),
        ("a, a, a", "{most: 2}", "t.union needs 2 inputs, but 3 are given"),
    ],
)
def test_the_number_of_inputs_is_checked(mistakes, nodes, inputs, config, expected):
    text = nodes(
        ("a", "t.source", ""), ("z", "t.sink", "a"), ("b", "t.union", inputs, f"config: {config}"), ("c", "t.sink", "b")
    )
    assert expected in [error.message for error in mistakes(text)]


def test_one_node_may_be_read_twice(plan, nodes):
    made = plan(nodes(("a", "t.source", ""), ("b", "t.union", "a, a"), ("c", "t.sink", "b")))
    assert [(edge.source, edge.input) for edge in made.inputs_of("b")] == [("a", 0), ("a", 1)]


@pytest.mark.parametrize(
    ("key", "fragment"), [("tags", "no stable hash"), ("nme", "by 'nme', which is not a column of them")]
)
def test_keys_must_be_columns_with_a_stable_hash(mistakes, nodes, key, fragment):
    text = nodes(("a", "t.source", ""), ("b", "t.key_by", "a", f"config: {{keys: [k, {key}]}}"), ("c", "t.sink", "b"))
    (error,) = mistakes(text)
    assert under(error, text) == key
    assert fragment in error.message


@pytest.mark.parametrize(
    ("operator", "fragment", "suggestion"),
    [
        ("t.mpa", "there is no operator 't.mpa'", "t.map"),
        ("map", "its name has the form plugin.operator", "t.map"),
        ("other.key_by", "there is no operator", "t.key_by"),
        ("acme.enrich", "there is no operator", None),
        ("std.filter", "needs the plugin arroyo-std, which is not installed: pip install arroyo-std", None),
        ("impulse.source", "pip install arroyo-nexmark", None),
        ("broken.thing", "could not be loaded: ImportError: no module named 'x'", None),
        ("shut.thing", "is blocked by ARROYO_BLOCK_PLUGINS", None),
        ("t.claimed", "registered twice: by a 1 and by b 2", None),
    ],
)
def test_an_operator_that_cannot_be_used_says_why(mistakes, nodes, operator, fragment, suggestion):
    text = nodes(("a", "t.source", ""), ("b", operator, "a"), ("c", "t.sink", "b"))
    (error,) = mistakes(text)
    assert under(error, text) == operator
    assert fragment in error.message
    assert error.suggestion == suggestion


@pytest.mark.parametrize(
    ("step", "fragment"),
    [
        ("schema", "output_schema() failed with RuntimeError: cannot work with ${SECRET}"),
        ("answer", "output_schema() returned str, not ArroyoSchema"),
        ("routing", "routing_keys() gives 0 answers for 1 inputs"),
        ("panic", "with_config failed with PanicError: index out of bounds"),
        ("nothing", "with_config returned NoneType, not ConstructedOperator"),
    ],
)
def test_a_fault_of_a_plugin_is_reported_at_its_node_without_secrets(mistakes, nodes, step, fragment):
    config = f'config: {{step: {step}, secret: "${{SECRET}}"}}'
    text = nodes(("a", "t.source", ""), ("b", "t.faulty", "a", config), ("c", "t.sink", "b"))
    (error,) = mistakes(text, {"SECRET": "hunter2"})
    assert under(error, text) == "t.faulty"
    assert fragment in error.message
    assert "a fault of t-plugin 1.0" in error.message
    assert "hunter2" not in "".join([str(error), *getattr(error, "__notes__", [])])


def test_a_misused_option_is_a_fault_of_the_plugin(mistakes, nodes):
    text = nodes(("a", "t.source", ""), ("b", "t.misused", "a", "config: {lapse: 10s}"), ("c", "t.sink", "b"))
    (error,) = mistakes(text)
    assert "is a duration, so it must be an int64; this is a fault of t-plugin 1.0" in error.message


def test_a_plan_carries_the_config_as_the_driver_resolved_it_once(plan, nodes, plugins):
    text = nodes(("a", "t.source", ""), ("b", "t.resolving", "a", "config: {path: in}"), ("c", "t.sink", "b"))
    planned = plan(text)
    assert dict(struct_pb2.Struct.FromString(planned.nodes["b"].config)) == {"path": "/absolute/in"}
    assert plugins.constructor("t.resolving").resolved == 1


def test_a_mistake_that_resolve_finds_has_its_place(mistakes, nodes):
    text = nodes(("a", "t.source", ""), ("b", "t.resolving", "a", "config: {way: in}"), ("c", "t.sink", "b"))
    (error,) = mistakes(text)
    assert error.message == "path is needed"
    assert error.at.line == 4


def test_a_constructor_that_changes_its_config_is_warned_of_and_still_works(plan, nodes):
    text = nodes(("a", "t.source", ""), ("b", "t.former", "a", "config: {path: in}"), ("c", "t.sink", "b"))
    with pytest.warns(DeprecationWarning, match=r"with_config of t\.former changes its config.*resolve"):
        planned = plan(text)
    assert dict(struct_pb2.Struct.FromString(planned.nodes["b"].config)) == {"path": "/absolute/in"}


def test_the_shape_of_the_graph_does_not_depend_on_the_environment(mistakes, nodes):
    text = nodes(('"${A}"', "t.source", ""), ("b", '"${A}"', "b"), ("c", "t.sink", '"${A}"'))
    found = [error.message for error in mistakes(text, {"A": "t.map"})]
    for what in ("'id'", "'operator'", "an input"):
        assert f"{what} cannot be read from the environment" in found


@pytest.mark.parametrize("name", ["a/b", "..", ".", "a b", "ü", "''"])
def test_a_name_must_be_fit_for_a_path(mistakes, nodes, name):
    text = nodes(("a", "t.source", ""), ("b", "t.sink", "a"), head=f"name: {name}")
    (error,) = mistakes(text)
    assert (error.at.line, error.at.column) == (1, 7)


@pytest.mark.parametrize(
    ("head", "place", "fragment"),
    [
        ("name: t\ncheckpoint: {interval: 100us}", "2:24", "at least 1ms"),
        ("name: t\ncheckpoint: {timeout: 999ms}", "2:23", "'timeout' must be at least 1s"),
        ("name: t\ncheckpoint: {timeout: 10}", "2:23", "'timeout'"),
        ("name: t\ncheckpoint: {bytes: 0}", "2:21", "at least 1"),
        ("name: t\ncheckpoint: {rows: 0}", "2:20", "between 1 and"),
        ("name: t\ncheckpoint: {url: ''}", "2:19", "must not be empty"),
        ("name: t\ncheckpoint: ./state", "2:13", "must be a mapping with the keys url, interval"),
        ("name: t\nparallelism: 1.5", "2:14", "whole number"),
        ("name: t\nudfs: {}", "2:7", "must be a list"),
        ("name: 5", "1:7", "must be a string, not the number 5"),
    ],
)
def test_the_settings_of_a_pipeline_are_checked(mistakes, nodes, head, place, fragment):
    (error,) = mistakes(nodes(("a", "t.source", ""), ("b", "t.sink", "a"), head=head))
    assert f"{error.at.line}:{error.at.column}" == place
    assert fragment in error.message


@pytest.mark.parametrize("value", ["", "udfs:", "udfs: []", "checkpoint:", "parallelism: ~"])
def test_a_key_without_a_value_counts_as_not_written(plan, nodes, value):
    assert plan(nodes(("a", "t.source", ""), ("b", "t.sink", "a"), head=f"name: t\n{value}")).job_id == "t"


def test_a_file_that_cannot_be_read_is_a_mistake_without_a_place(plugins, tmp_path):
    with pytest.raises(InvalidPipelineError, match="No such file") as caught:
        plan_pipeline(tmp_path / "none.yaml", plugins=plugins, environment={})
    assert caught.value.errors[0].at is None


def test_a_file_is_planned_like_its_text(plugins, tmp_path, nodes):
    text = nodes(("a", "t.source", ""), ("b", "t.sink", "a"))
    path = tmp_path / "p.yaml"
    path.write_text(text)
    planned = plan_pipeline(path, plugins=plugins, environment={})
    assert planned == plan_text(text, plugins=plugins, environment={})


WHOLE = """\
name: whole
parallelism: 2
checkpoint: {url: ./x, interval: 10s, bytes: 1MiB}
nodes:
  - {id: a, operator: t.source}
  - {id: b, operator: t.kitchen, inputs: [a], config: {text: x, nested: {column: c}, words: [k], max_size: 1MB}}
  - {id: c, operator: t.key_by, inputs: [b], config: {keys: [k]}}
  - {id: d, operator: t.sink, inputs: [c], parallelism: 1}
"""
LINES = st.lists(st.sampled_from(WHOLE.splitlines()), max_size=9).map("\n".join)
SIGNS = st.text(st.sampled_from(list("abk0:-[]{}&*#'\"!|>\n\t $?,~.")), max_size=4)


@st.composite
def damaged(draw):
    """The whole pipeline with up to three places replaced, or its lines in any order."""
    if draw(st.booleans()):
        return draw(LINES)
    text = WHOLE
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        text = text[:start] + draw(SIGNS) + text[start + draw(st.integers(0, 12)) :]
    return text


@given(damaged())
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_planned_or_refused_with_places_but_never_crashes(plan, text):
    try:
        plan(text)
    except InvalidPipelineError as invalid:
        lines = split_lines(text)
        places = [(error.at.line, error.at.column) for error in invalid.errors]
        assert places == sorted(places)
        assert all(1 <= line <= len(lines) and 1 <= column <= len(lines[line - 1]) + 1 for line, column in places)


def test_executors_that_read_a_plan_do_not_import_the_planner():
    code = "import sys, arroyo_core.pipeline.plan; print({'yaml', 'arroyo_core.pipeline.planner'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "set()"
