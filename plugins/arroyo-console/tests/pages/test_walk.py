"""A walk as a new user would take it, in a real Chromium, with a real server and a real job.

With ARROYO_CONSOLE_PICTURES=FOLDER it leaves pictures there.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from .support.browser import PATIENCE_MS, Serving, Window, chromium, find_chromium

pytestmark = pytest.mark.server

WRONG = """\
SET name = 'busy';
SET checkpoint.interval = '1 second';
SET updating_ttl = '1 hour';

CREATE TABLE bids WITH (connector = 'nexmark', table = 'bid', rate = 300);

SELECT auction, count(*) AS bids, max(prise) AS highest FROM bids GROUP BY auction;
"""
RIGHT = WRONG.replace("prise", "price")


@pytest.fixture(scope="module")
def serving(tmp_path_factory) -> Iterator[Serving]:
    find_chromium()
    server = Serving(tmp_path_factory.mktemp("console"))
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def window(serving) -> Iterator[Window]:
    with chromium() as context:
        expect.set_options(timeout=PATIENCE_MS)
        window = Window(context, serving.url)
        yield window
        assert not window.elsewhere, "the pages need the internet"
        assert not window.wrong, window.wrong


def paste(page: Page, text: str) -> None:
    """As somebody does who replaces all of it."""
    page.get_by_role("textbox", name="text of the pipeline").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)


def fact(page: Page, name: str) -> str:
    return (
        page.locator("dl.facts div", has=page.locator("dt", has_text=re.compile(f"^{name}$")))
        .locator("dd")
        .inner_text()
    )


def test_a_new_user_makes_a_pipeline_watches_it_and_stops_it(window):
    page = window.page
    window.open("/")
    page.get_by_role("button", name="New pipeline").click()

    # Its error is at its line.
    paste(page, WRONG)
    problem = page.get_by_role("alert").filter(has_text="prise")
    expect(problem).to_contain_text("Line 7")
    expect(page.locator(".cm-wrong")).to_contain_text("prise")
    window.pictures("error")

    # Fixed, it has a graph and rows.
    paste(page, RIGHT)
    expect(page.get_by_text("No mistakes.")).to_be_visible()
    expect(page.locator(".cm-wrong")).to_have_count(0)
    expect(page.get_by_role("group", name="graph of the text").locator("svg")).to_contain_text("nexmark.source")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("th", has_text="highest")).to_be_visible()
    window.pictures("preview")

    page.get_by_role("button", name="Run").click()
    page.wait_for_url("**/pipelines/*")
    here = page.url

    # Rates and lag are watched while it runs.
    expect(page.locator(".badge", has_text="running").first).to_be_visible()
    expect(page.locator("dl.facts")).to_contain_text(re.compile(r"[1-9][0-9,.]* rows/s"))
    first = int(fact(page, "epoch"))
    expect(page.locator("dl.facts div", has_text="epoch").locator("dd")).not_to_have_text(str(first))
    expect(page.locator("svg.graph").first).to_contain_text("busy")
    expect(page.locator("figure.chart").first).to_contain_text("rows read")
    window.pictures("running")

    # Killed, it is started again, and the page says so.
    pid = int(fact(page, "process"))
    os.kill(pid, signal.SIGKILL)
    expect(page.locator("dl.facts div", has_text="process").locator("dd")).not_to_have_text(str(pid))
    expect(page.locator(".badge", has_text="running").first).to_be_visible()
    page.get_by_role("tab", name="Errors").click()
    expect(page.locator("table", has_text="started again by itself")).to_be_visible()
    window.pictures("restarted")

    # From one subtask to two, and from two to three.
    page.goto(here)
    for subtasks in (2, 3):
        page.get_by_role("button", name="Rescale").first.click()
        dialog = page.get_by_role("dialog", name="Rescale the pipeline")
        dialog.get_by_label("Subtasks").fill(str(subtasks))
        dialog.get_by_role("button", name="Rescale").click()
        expect(page.locator("dl.facts div", has_text="subtasks").locator("dd")).to_have_text(str(subtasks))
        expect(page.locator(".badge", has_text="running").first).to_be_visible()
    window.picture("rescaled")

    # The state of a key, and what became of it since an epoch before.
    page.get_by_role("tab", name="State").click()
    page.get_by_role("button", name="Read").click()
    rows = page.locator("section", has=page.locator("h2", has_text="Rows")).locator("table")
    expect(rows.locator("tbody tr").first).to_be_visible()
    heads = rows.locator("th").all_inner_texts()
    key = rows.locator("tbody tr").first.locator("td").nth(heads.index("auction")).inner_text()
    page.get_by_label("Key or value (empty: all)").fill(key)
    page.get_by_role("button", name="Read").click()
    expect(page.get_by_role("status").filter(has_text=" row of ")).to_be_visible()
    page.get_by_label("Compare with epoch").click()
    page.get_by_role("option").last.click()
    page.get_by_label("Key or value (empty: all)").fill("")
    page.get_by_role("button", name="Read").click()
    expect(rows.locator(".badge", has_text="+ came").first).to_be_visible()
    changed = rows.locator("tbody tr").first.locator("td").nth(heads.index("auction") + 1).inner_text()
    page.get_by_label("Key or value (empty: all)").fill(changed)
    page.get_by_role("button", name="Read").click()
    expect(page.get_by_role("status").filter(has_text=", since epoch ")).to_be_visible()
    expect(rows.locator("tbody tr").first).to_contain_text(changed)
    window.pictures("state")

    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Stop at a checkpoint").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop at a checkpoint").click()
    expect(page.locator(".badge", has_text="stopped").first).to_be_visible()
    window.open("/")
    expect(page.locator("table")).to_contain_text("busy")
    window.pictures("list")
