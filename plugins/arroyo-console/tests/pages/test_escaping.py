"""What jobs, rows, logs and errors say is text on every page, whatever is in it."""

from __future__ import annotations

import pytest
from arroyo_console.pages.words import Safe, joined, shown, tag
from arroyo_console.values import State

from .support.fake_console import FakeConsole, a_pipeline, problems_at
from .support.visitor import Visitor, visiting

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{7*7}}</textarea>"
PAGES = (
    "/",
    "/pipelines/p1",
    "/pipelines/p1?tab=checkpoints",
    "/pipelines/p1?tab=state",
    "/pipelines/p1?tab=errors",
    "/pipelines/p1?tab=letters",
    "/pipelines/p1?tab=logs",
    "/pipelines/p1?tab=config",
    "/editor",
    "/installed",
    "/installed/std.filter",
    "/doctor",
)


def an_evil_console(state: State = State.FAILED) -> FakeConsole:
    return FakeConsole(a_pipeline(f"shop{EVIL}", state=state, error=f"bad{EVIL}", checkpoint_url=EVIL), evil=EVIL)


def check(visitor: Visitor) -> None:
    for tag_name, attributes in visitor.markup.elements:
        assert tag_name not in {"script", "img", "textarea", "iframe", "style"}
        assert not any(name.startswith("on") for name in attributes), (tag_name, attributes)
        assert not (attributes.get("href") or "").startswith("javascript:")


@pytest.mark.parametrize("path", PAGES)
def test_a_page_shows_evil_text_as_text(path):
    async def scenario(visitor: Visitor) -> None:
        await visitor.open(path)
        if path == "/editor":
            await visitor.until(lambda: "svg" in [name for name, _ in visitor.markup.elements])
        else:
            await visitor.sees(EVIL)
        check(visitor)

    visiting(an_evil_console(), scenario)


def test_rows_of_state_and_of_a_preview_are_text():
    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/pipelines/p1?tab=state")
        await visitor.sees("counts.a")
        await visitor.click("Read")
        await visitor.sees(f"Ann{EVIL}")
        check(visitor)
        await visitor.open("/editor")
        await visitor.click("Preview")
        await visitor.sees(f"Ann{EVIL}")
        check(visitor)

    visiting(an_evil_console(), scenario)


def test_mistakes_in_a_text_are_text():
    console = FakeConsole()
    console.graph_of = lambda _: problems_at(1, f"no operator {EVIL}")

    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/editor")
        await visitor.sees(f"no operator {EVIL}")
        check(visitor)

    visiting(console, scenario)


def test_only_what_is_safe_is_taken_as_html():
    assert shown("<b>") == "&lt;b&gt;"
    assert shown(Safe("<b>")) == "<b>"
    assert joined(["<i>", Safe("<b>")], "<") == "&lt;i&gt;&lt;<b>"
    assert tag("p", "<", title='"><x') == '<p title="&quot;&gt;&lt;x">&lt;</p>'
    # What is made of safe text by Python itself is safe no more.
    assert shown(Safe("<b>") + "<i>") == "&lt;b&gt;&lt;i&gt;"
    assert type(shown(f"{Safe('<b>')}")) is Safe
    assert shown(f"{Safe('<b>')}") == "&lt;b&gt;"


def test_directions_of_text_cannot_be_changed_by_a_name():
    assert "\u202e" not in shown("user\u202egnp.exe")
