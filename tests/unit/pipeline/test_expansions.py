"""Nodes that stand for others, and languages that know the plugins they are planned with."""

import types
from dataclasses import replace

import pytest

from arroyo_core.api import Origin
from arroyo_core.errors import InvalidPipelineError, PluginError
from arroyo_core.pipeline import plan_file, plan_text
from arroyo_core.pipeline.document import Entry, Scalar, YamlList, YamlMap
from arroyo_core.pipeline.expansions import Expansion
from arroyo_core.pipeline.inline import InlineText
from arroyo_core.pipeline.languages import Language, Yaml, language_of
from arroyo_core.plugin import hookimpl
from arroyo_core.plugin.discovery import Hooks


def with_hooks(plugins, **hooks):
    known = replace(plugins, hooks=Hooks())
    register(known, "made-up", **hooks)
    return known


def register(plugins, distribution, **hooks):
    module = types.ModuleType(distribution)
    for name, function in hooks.items():
        setattr(module, name, hookimpl(function))
    plugins.hooks.register(module, Origin(distribution, "1.0"))


def scalar(value, at):
    return Scalar(at=at, text=value, written=value, is_plain=True)


def node(at, node_id, source):
    inputs = YamlList(at=at, items=(scalar(source, at),), size=2)
    values = {"id": scalar(node_id, at), "operator": scalar("t.map", at), "inputs": inputs}
    entries = tuple(Entry(key=key, key_at=at, value=value) for key, value in values.items())
    return YamlMap(at=at, entries=entries, size=5)


class Copies(Expansion):
    """`copies: NAME` is two nodes behind the one of that name."""

    key = "copies"

    def inputs(self, unexpanded, ids):
        return [name for name in ids if name == unexpanded.value.text]

    def expand(self, unexpanded, inputs, *, plugins, environment, mistakes):
        if not inputs:
            mistakes.add(f"nothing is called {unexpanded.value.text}", at=unexpanded.value.at)
            return None
        (source,) = inputs
        at = unexpanded.value.at
        return [node(at, f"{unexpanded.id}_1", source), node(at, unexpanded.id, f"{unexpanded.id}_1")]


@pytest.fixture
def expanding(plugins):
    return with_hooks(plugins, arroyo_expansion=lambda: [Copies()])


def text(*nodes):
    lines = [
        "name: p",
        "nodes:",
        *(f"  - {{{each}}}" for each in nodes),
        "  - {id: out, operator: t.sink, inputs: [b]}",
    ]
    return "\n".join(lines)


SOURCE = "id: s, operator: t.source"


def planned(expanding, *nodes):
    return plan_text(text(*nodes), file="p.yaml", plugins=expanding, environment={})


def mistakes(expanding, *nodes):
    with pytest.raises(InvalidPipelineError) as raised:
        planned(expanding, *nodes)
    return [f"{error.at.line}: {error.message}" for error in raised.value.errors]


class TestExpansions:
    def test_a_node_is_replaced_after_those_it_reads(self, expanding):
        found = planned(expanding, "id: b, copies: a", "id: a, copies: s", SOURCE)
        assert sorted(found.nodes) == ["a", "a_1", "b", "b_1", "out", "s"]
        assert [edge.source for edge in found.edges if edge.target == "b_1"] == ["a"]

    def test_what_cannot_be_expanded_is_one_mistake(self, expanding):
        found = mistakes(expanding, SOURCE, "id: a, copies: none", "id: b, copies: a")
        assert found == ["4: nothing is called none"]

    def test_nodes_that_read_one_another_are_a_mistake(self, expanding):
        found = mistakes(expanding, SOURCE, "id: a, copies: b", "id: b, copies: a")
        assert found == ["4: the nodes a, b read one another"]

    def test_a_mistake_of_an_input_is_told_instead(self, expanding):
        found = mistakes(expanding, "id: s, operator: t.none", "id: b, copies: s")
        assert found == ["3: there is no operator 't.none'"]

    def test_without_a_plugin_the_node_needs_an_operator(self, plugins):
        with pytest.raises(InvalidPipelineError, match="nodes\\[1\\] has no key 'copies'"):
            planned(plugins, SOURCE, "id: b, copies: s")

    def test_two_plugins_cannot_have_the_same_key(self, plugins):
        both = with_hooks(plugins, arroyo_expansion=lambda: [Copies()])
        register(both, "other", arroyo_expansion=lambda: [Copies()])
        with pytest.raises(PluginError, match=r"made-up 1\.0 and by other 1\.0"):
            planned(both, SOURCE, "id: b, copies: s")


class Upper(Language):
    """YAML in capitals, which knows the plugins."""

    endings = (".upper",)
    plugins = None

    def for_planning(self, plugins, bundles):
        made = Upper()
        made.plugins = plugins
        return made

    def read(self, text, **arguments):
        assert self.plugins is not None
        return Yaml().read(text.lower(), **arguments)


class TestLanguages:
    def test_a_language_is_told_the_plugins_that_it_is_planned_with(self, plugins, tmp_path):
        known = with_hooks(plugins, arroyo_language=lambda: [Upper()])
        path = tmp_path / "p.upper"
        path.write_text("NAME: P\nNODES: [{ID: A, OPERATOR: T.SOURCE}, {ID: B, OPERATOR: T.SINK, INPUTS: [A]}]")
        assert plan_file(path, plugins=known, environment={}).plan.job_id == "p"

    def test_a_text_may_stand_for_a_file(self, plugins):
        given = InlineText("given.yaml", "name: p\nnodes: [{id: a, operator: t.nothing}]")
        with pytest.raises(InvalidPipelineError, match=r"given\.yaml:2:27"):
            plan_file(given, plugins=plugins, environment={})

    def test_a_language_of_another_distribution_is_named(self, plugins):
        with pytest.raises(PluginError, match=r"files \*\.sql are read by arroyo-sql, .* pip install arroyo-sql"):
            language_of("q.sql", plugins)
