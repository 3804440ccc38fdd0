"""The editor of texts."""

from __future__ import annotations

from arroyo_console.errors import InvalidTextError
from arroyo_console.pages.completion import completions
from arroyo_console.pages.samples import SAMPLES
from arroyo_console.values import Connector, Function, Graph, Language, Problem, Role, State
from nicegui import ui

from .support.fake_console import FakeConsole, a_graph, a_pipeline, problems_at
from .support.visitor import Visitor, visiting


def the_editor(visitor: Visitor) -> ui.codemirror:
    assert visitor.user.client is not None
    (found,) = [each for each in visitor.user.client.elements.values() if isinstance(each, ui.codemirror)]
    return found


def test_a_mistake_is_marked_at_its_line_and_goes_when_it_is_corrected():
    console = FakeConsole()
    console.graph_of = lambda text: problems_at(2, "no operator 'kafak'") if "kafak" in text else a_graph()

    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/editor?language=yaml")
        await visitor.sees("No mistakes.")
        editor = the_editor(visitor)
        editor.set_value("name: x\nnodes: kafak")
        await visitor.sees("Line 2, column 3: no operator 'kafak'; did you mean 'kafka.source'?")
        assert [(each["kind"], each["line"]) for each in editor.decorations] == [("line", 2)]
        assert "no operator" in editor.line_tooltips[2]
        editor.set_value("name: x\nnodes: kafka")
        await visitor.sees("No mistakes.")
        assert not editor.decorations

    visiting(console, scenario)


def test_only_the_last_text_is_planned_while_somebody_types():
    console = FakeConsole()

    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/editor?language=yaml")
        await visitor.sees("No mistakes.")
        before = console.calls["graph"]
        editor = the_editor(visitor)
        console.graph_of = lambda text: problems_at(1, f"read {len(text)} letters")
        for length in range(1, 20):
            editor.set_value("x" * length)
        await visitor.sees("read 19 letters")
        assert console.calls["graph"] == before + 1

    visiting(console, scenario)


def test_what_was_not_looked_at_is_no_mistake():
    console = FakeConsole()
    refusal = Problem(message="functions of users are not looked at", line=1, is_refusal=True)
    console.graph_of = lambda _: Graph(problems=(refusal,))

    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/editor")
        await visitor.sees("functions of users are not looked at")
        assert not the_editor(visitor).decorations

    visiting(console, scenario)


def test_a_preview_shows_rows_of_a_node():
    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/editor")
        await visitor.click("Preview")
        await visitor.sees("customer: string", "Ann", "total: int64")

    visiting(FakeConsole(), scenario)


def test_run_makes_a_pipeline_and_goes_to_it():
    console = FakeConsole()

    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/editor")
        await visitor.click("Run")
        await visitor.until(lambda: bool(console.all))
        await visitor.until(lambda: visitor.user.back_history[-1] == "/pipelines/p1")

    visiting(console, scenario)
    (made,) = console.all.values()
    assert (made.text, made.language) == (SAMPLES[Language.SQL], Language.SQL)


def test_a_text_that_is_refused_stays_with_its_mistakes():
    console = FakeConsole()

    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/editor")
        await visitor.sees("No mistakes.")
        console.refuses = InvalidTextError("not a pipeline", problems=[Problem(message="no sink", line=3)])
        await visitor.click("Run")
        await visitor.sees("Line 3: no sink")
        assert not console.all

    visiting(console, scenario)


def test_another_language_has_another_sample_but_keeps_what_somebody_wrote():
    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/editor?language=yaml")
        editor = the_editor(visitor)
        (toggle,) = [each for each in visitor.user.client.elements.values() if isinstance(each, ui.toggle)]
        toggle.set_value("sql")
        await visitor.until(lambda: editor.value == SAMPLES[Language.SQL])
        editor.set_value("SELECT 1;")
        toggle.set_value("yaml")
        await visitor.until(lambda: editor.language == "YAML")
        assert editor.value == "SELECT 1;"

    visiting(FakeConsole(), scenario)


def test_a_new_text_of_a_running_pipeline_is_saved_for_its_next_start():
    console = FakeConsole(a_pipeline(state=State.RUNNING))

    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/editor/p1")
        the_editor(visitor).set_value("name: shop\n")
        await visitor.click("Save")
        await visitor.until(lambda: bool(console.changes))

    visiting(console, scenario)
    assert console.changes == [("p1", {"text": "name: shop\n", "language": Language.YAML})]


def test_who_may_only_read_can_look_but_not_run():
    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/editor")
        await visitor.sees("No mistakes.")
        assert "Preview" in visitor.buttons
        assert "Run" not in visitor.buttons

    visiting(FakeConsole(), scenario, role=Role.READ)


def test_completion_offers_what_is_installed():
    config = {"properties": {"predicate": {"description": "Which rows stay."}}}
    rule = {
        "if": {"properties": {"operator": {"const": "std.filter"}}},
        "then": {"properties": {"config": config}},
    }
    schema = {
        "properties": {"name": {"description": "The name."}},
        "definitions": {"node": {"properties": {"id": {}}, "allOf": [rule]}},
    }
    connector = Connector(
        name="std.filter", kind="operator", distribution="arroyo-std", version="1", summary="Keeps some rows."
    )
    function = Function(name="distance", signature="distance(a, b)", distribution="arroyo-udf-geo", version="1")
    found = completions(schema, [connector], [function])
    assert [each["label"] for each in found["keys"]] == ["name", "id"]
    assert found["operators"] == [
        {"label": "std.filter", "type": "class", "detail": "operator", "info": "Keeps some rows."}
    ]
    assert found["settings"] == {"std.filter": [{"label": "predicate", "type": "property", "info": "Which rows stay."}]}
    assert "SELECT" in [each["label"] for each in found["sql"]]
    assert found["functions"] == [{"label": "distance", "type": "function", "detail": "distance(a, b)"}]
