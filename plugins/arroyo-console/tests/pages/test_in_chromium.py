"""The pages in a real Chromium, over values: what only a browser can tell."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.waiting import wait_until

from .support.browser import PATIENCE_MS, Window, chromium, find_chromium, free_port

pytestmark = pytest.mark.server

PAGES = (
    "/",
    "/pipelines/p1",
    "/pipelines/p1?tab=checkpoints",
    "/pipelines/p1?tab=state",
    "/pipelines/p1?tab=errors",
    "/pipelines/p1?tab=letters",
    "/pipelines/p1?tab=logs",
    "/pipelines/p1?tab=config",
    "/pipelines/none",
    "/editor",
    "/installed",
    "/installed/std.filter",
    "/doctor",
)
EVIL = "<script>wrong()</script>\"'><img src=x onerror=wrong()></textarea>`${wrong()}`{{wrong()}}"
SERIOUS = {"serious", "critical"}


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    find_chromium()
    port = free_port()
    command = [sys.executable, "-m", "support.fake_server", str(port), *arguments]
    process = subprocess.Popen(command, cwd=Path(__file__).parent)
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        assert process.poll() is None
        try:
            return bool(urllib.request.urlopen(f"{url}/doctor", timeout=5).status == 200)
        except OSError:
            return False

    try:
        wait_until(answers)
        yield url
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with serving() as url:
        yield url


@pytest.fixture
def window(site) -> Iterator[Window]:
    with chromium() as context:
        expect.set_options(timeout=PATIENCE_MS)
        window = Window(context, site)
        yield window
        assert not window.elsewhere, "the pages need the internet"
        assert not window.wrong, window.wrong


def is_built(window: Window) -> None:
    """Until a page has what it gets after its first answer."""
    expect(window.page.locator("h1").first).to_be_visible()
    window.page.wait_for_load_state("networkidle")
    expect(window.page.locator("[role=status]", has_text=re.compile("Planning|Looking|Loading"))).to_have_count(0)


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_axe_finds_nothing_serious_and_nothing_is_wider_than_the_page(window, width, theme):
    page = window.page
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme)
    found = []
    for path in PAGES:
        window.open(path)
        is_built(window)
        violations = Axe().run(page).response["violations"]
        found += [
            f"{path}: {each['id']}: {each['nodes'][0]['html'][:200]}"
            for each in violations
            if each["impact"] in SERIOUS
        ]
        if page.evaluate("document.documentElement.scrollWidth") > width:
            found.append(f"{path} is wider than {width}")
    assert not found, "\n".join(found)


def test_the_keyboard_reaches_everything(window):
    page = window.page
    window.open("/pipelines/p1")
    is_built(window)
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    # The first link of the content, not of the heading.
    expect(page.locator(".content a").first).to_be_focused()
    page.get_by_role("button", name="Rescale").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Rescale the pipeline")
    expect(dialog).to_be_visible()
    # It keeps the focus, and gives it back.
    expect(dialog.get_by_label("Subtasks")).to_be_focused()
    # axe takes the dimmed page behind it for the background of its buttons, which are those of the pages.
    options = {"rules": {"color-contrast": {"enabled": False}}}
    violations = Axe().run(page, context=".q-dialog", options=options).response["violations"]
    assert not [each["nodes"][0]["html"] for each in violations if each["impact"] in SERIOUS]
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Rescale")).to_be_focused()


def test_the_theme_is_kept(window):
    page = window.page
    window.open("/")
    is_built(window)
    assert "body--light" in (page.locator("body").get_attribute("class") or "")
    page.get_by_role("button", name="Theme: auto").click()
    page.get_by_role("button", name="Theme: light").click()
    expect(page.locator("body")).to_have_class(re.compile("body--dark"))
    window.open("/doctor")
    expect(page.locator("body")).to_have_class(re.compile("body--dark"))
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()


def test_the_editor_completes_operators(window):
    page = window.page
    window.open("/editor?language=yaml")
    is_built(window)
    text = page.get_by_role("textbox", name="text of the pipeline")
    text.click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text("nodes:\n  - id: x\n    operator: std.fi")
    page.keyboard.press("Control+Space")
    option = page.get_by_role("option", name=re.compile("std.filter"))
    expect(option).to_be_visible()
    # An option is taken only once it has been there for a moment.
    page.wait_for_timeout(200)
    page.keyboard.press("Enter")
    expect(text).to_contain_text("operator: std.filter")


def test_a_graph_of_300_nodes_is_drawn(window):
    page = window.page
    window.open("/pipelines/p1")
    is_built(window)
    nodes = page.locator("svg.graph").first.locator("a")
    expect(nodes).to_have_count(300)
    nodes.nth(2).focus()
    page.keyboard.press("Enter")
    expect(page.locator("tr:target")).to_have_count(1)


def test_evil_text_runs_nowhere():
    with serving(EVIL) as url, chromium() as context:
        window = Window(context, url)
        page = window.page
        ran: list[str] = []
        page.expose_function("wrong", lambda: ran.append(page.url))
        for path in PAGES:
            window.open(path)
            is_built(window)
            assert page.locator("img[src=x]").count() == 0, path
        window.open("/pipelines/p1?tab=state")
        page.get_by_role("button", name="Read").click()
        expect(page.locator("td", has_text="Ann").first).to_be_visible()
        window.open("/editor")
        page.get_by_role("button", name="Preview").click()
        expect(page.locator("td", has_text="Ann").first).to_be_visible()
        page.get_by_role("textbox", name="text of the pipeline").click()
        page.keyboard.insert_text("kafak")
        mark = page.locator(".cm-wrong")
        expect(mark).to_be_visible()
        mark.hover()
        page.keyboard.press("Control+Space")
        page.wait_for_timeout(500)
        assert page.locator("img[src=x]").count() == 0
        assert not ran
        assert not window.wrong
