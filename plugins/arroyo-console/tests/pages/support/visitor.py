"""A visit to the pages without a browser, by NiceGUI's own simulation."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from html.parser import HTMLParser

from arroyo_console.pages.routes import add_routes
from arroyo_console.service import Console
from arroyo_console.values import Role
from nicegui import ui
from nicegui.testing import User, user_simulation

#: A page that has not come to it by then never will.
PATIENCE_S = 20.0


class Markup(HTMLParser):
    """The elements of a piece of HTML, and what is read in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def links(self) -> list[str]:
        return [attributes["href"] or "" for tag, attributes in self.elements if tag == "a" and "href" in attributes]


class Visitor:
    """Somebody with a browser."""

    def __init__(self, user: User) -> None:
        self.user = user

    async def open(self, path: str) -> None:
        await self.user.open(path)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Answers come from threads, and pages ask again by themselves."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not holds():
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"the page has:\n{self.text}\nwith buttons {self.buttons}") from None

    async def sees(self, *texts: str) -> None:
        await self.until(lambda: all(text in self.text for text in texts))

    @property
    def markup(self) -> Markup:
        assert self.user.client is not None
        elements = list(self.user.client.elements.values())
        return Markup("\n".join(each.content for each in elements if isinstance(each, ui.html)))

    @property
    def text(self) -> str:
        return self.markup.text

    @property
    def buttons(self) -> list[str]:
        assert self.user.client is not None
        elements = self.user.client.elements.values()
        return [each.text for each in elements if isinstance(each, ui.button) and each.visible]

    def element(self, kind: type[ui.element], label: str) -> ui.element:
        assert self.user.client is not None
        elements = [each for each in self.user.client.elements.values() if isinstance(each, kind)]
        (found,) = [each for each in elements if each.props.get("label") == label]
        return found

    async def click(self, button: str) -> None:
        self.user.find(kind=ui.button, content=button).click()

    async def answer(self, label: str) -> None:
        """Click on the button of a dialog, which may have a namesake on the page."""
        found = self.user.find(kind=ui.button, content=label)
        found.elements = {
            each for each in found.elements if any(isinstance(above, ui.dialog) for above in each.ancestors())
        }
        found.click()


@asynccontextmanager
async def visit(console: Console, role: Role = Role.WRITE) -> AsyncIterator[Visitor]:
    modules = dict(sys.modules)
    try:
        async with user_simulation() as user:
            add_routes(console, lambda _: role)
            yield Visitor(user)
    finally:
        # The simulation forgets the modules of pages: read again, they would have other classes.
        sys.modules.update(modules)


def visiting(console: Console, scenario: Callable[[Visitor], Awaitable[None]], *, role: Role = Role.WRITE) -> None:
    async def run() -> None:
        async with visit(console, role) as visitor:
            await scenario(visitor)

    asyncio.run(run())
