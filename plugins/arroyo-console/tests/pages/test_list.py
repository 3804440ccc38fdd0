"""The list of pipelines."""

from __future__ import annotations

from arroyo_console.errors import ConsoleError
from arroyo_console.pages.pipelines import SHOWN
from arroyo_console.values import Role, State
from nicegui import ui

from .support.fake_console import FakeConsole, a_pipeline
from .support.visitor import Visitor, visiting


def test_a_pipeline_has_its_state_rate_lag_and_last_checkpoint():
    console = FakeConsole(a_pipeline("shop"))

    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/")
        await visitor.sees("shop", "running", "12,346 rows/s", "4.2 s", "1,200 rows")
        assert "/pipelines/p1" in visitor.markup.links
        (time,) = [attributes for tag, attributes in visitor.markup.elements if tag == "time"]
        assert (time["title"] or "").endswith("Z")

    visiting(console, scenario)


def test_curves_come_after_the_list():
    console = FakeConsole(a_pipeline("shop"))

    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/")

        def curves() -> list[dict[str, str | None]]:
            return [attributes for _, attributes in visitor.markup.elements if attributes.get("class") == "spark"]

        await visitor.until(lambda: len(curves()) == 1)
        assert "40 epochs" in (curves()[0]["aria-label"] or "")

    visiting(console, scenario)


def test_an_empty_list_says_what_to_do():
    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/")
        await visitor.sees("There is no pipeline yet.")
        assert "/editor" in visitor.markup.links

    visiting(FakeConsole(), scenario)


def test_a_failed_pipeline_says_why():
    console = FakeConsole(a_pipeline("shop", state=State.FAILED, error="the broker does not answer"))

    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/")
        await visitor.sees("failed")
        await visitor.sees("the broker does not answer")

    visiting(console, scenario)


def test_hundreds_are_shown_a_page_at_a_time():
    console = FakeConsole(*(a_pipeline(f"shop_{number}", number=number) for number in range(1, 121)))

    def shown(visitor: Visitor) -> list[str]:
        return [where for where in visitor.markup.links if where.startswith("/pipelines/")]

    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/")
        assert len(shown(visitor)) == SHOWN
        await visitor.click("Next")
        await visitor.until(lambda: shown(visitor)[0] == "/pipelines/p51")
        await visitor.click("Next")
        last = [f"/pipelines/p{number}" for number in range(101, 121)]
        await visitor.until(lambda: shown(visitor) == last)
        await visitor.click("Previous")
        await visitor.until(lambda: shown(visitor)[0] == "/pipelines/p51")

    visiting(console, scenario)


def test_a_search_keeps_those_with_the_text():
    console = FakeConsole(a_pipeline("orders"), a_pipeline("bids", number=2))

    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/")
        search = visitor.element(ui.input, "Search by name")
        assert isinstance(search, ui.input)
        search.set_value("bid")
        await visitor.until(lambda: "/pipelines/p1" not in visitor.markup.links)
        assert "/pipelines/p2" in visitor.markup.links
        search.set_value("nothing")
        await visitor.sees("No pipeline has 'nothing' in its name.")

    visiting(console, scenario)


def test_who_may_only_read_makes_no_pipelines():
    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/")
        assert "New pipeline" not in visitor.buttons

    visiting(FakeConsole(a_pipeline()), scenario, role=Role.READ)


def test_what_the_console_refuses_is_told():
    console = FakeConsole(a_pipeline())
    console.refuses = ConsoleError("the database does not answer", where="database")

    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/")
        await visitor.sees("the database does not answer (database)")

    visiting(console, scenario)
