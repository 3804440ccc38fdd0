"""The page of one pipeline: how it is, its parts, and what can be done with it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from arroyo_console.errors import ConflictError
from arroyo_console.pages.overview import held_up, slowest_of
from arroyo_console.values import GraphEdge, JobMetrics, OperatorMetrics, Role, State, Wish
from nicegui import ui

from .support.fake_console import FakeConsole, a_pipeline
from .support.visitor import Visitor, visiting


def test_the_graph_marks_the_slowest_node_and_what_waits_for_it():
    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/pipelines/p1")
        await visitor.sees("Slowest is the operator joined", "busy 92%", "Give it more subtasks.")
        said = [
            attributes["aria-label"] or ""
            for tag, attributes in visitor.markup.elements
            if tag == "a" and "aria-label" in attributes
        ]
        by_node = {words.partition(",")[0]: words for words in said}
        assert "slowest" in by_node["joined"]
        assert "back-pressure" in by_node["orders"]
        assert "back-pressure" in by_node["customers"]
        assert "back-pressure" not in by_node["counts"]
        assert "10,000 rows/s" in by_node["orders"]

    visiting(FakeConsole(a_pipeline()), scenario)


def test_what_leads_to_a_node_waits_for_it():
    edges = [GraphEdge(source=source, target=target, routing="forward") for source, target in ("ab", "bc", "dc", "ce")]
    assert held_up(edges, "c") == {"a", "b", "d"}
    assert held_up(edges, "a") == frozenset()


def test_the_overview_has_state_by_operator_lag_and_curves():
    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/pipelines/p1")
        await visitor.sees("14.3 MiB", "late; late_rows 7", "watermark lag", "8 subtasks")
        assert "node-counts" in [attributes.get("id") for _, attributes in visitor.markup.elements]

    visiting(FakeConsole(a_pipeline()), scenario)


@pytest.mark.parametrize(
    ("tab", "texts"),
    [
        ("checkpoints", ("195.3 KiB", "8.6 MiB", "50 ms", "committed", "damaged", "the file is cut")),
        (
            "errors",
            ("the price is negative", "ValueError: bad", "node joined, subtask 1, epoch 40", "killed by a signal"),
        ),
        ("letters", ("negative at offset 7", "open")),
        ("logs", ("epoch 41 20,000 rows in",)),
        ("config", ("operator: kafka.source", "version 1", "s3://shop/state")),
    ],
)
def test_a_part_shows_what_it_is_about(tab, texts):
    async def scenario(visitor: Visitor) -> None:
        await visitor.open(f"/pipelines/p1?tab={tab}")
        await visitor.sees(*texts)

    visiting(FakeConsole(a_pipeline()), scenario)


@pytest.mark.parametrize("tab", ["overview", "checkpoints", "state", "errors", "letters", "logs", "config"])
def test_a_pipeline_that_never_ran_has_all_parts(tab):
    console = FakeConsole(a_pipeline(state=State.CREATED))

    async def scenario(visitor: Visitor) -> None:
        await visitor.open(f"/pipelines/p1?tab={tab}")
        await visitor.sees("It was never started. Start runs it.")
        assert "Start" in visitor.buttons
        assert "Stop" not in visitor.buttons

    visiting(console, scenario)


def test_a_line_of_a_log_is_shown_once():
    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/pipelines/p1?tab=logs")
        await visitor.sees("epoch 41 20,000 rows in")
        choice = visitor.element(ui.select, "What")
        assert isinstance(choice, ui.select)
        choice.set_value("output")
        await visitor.sees('{"customer": "Ann"}')
        choice.set_value("log")
        await visitor.sees("epoch 41 20,000 rows in")
        assert visitor.text.count("epoch 41 20,000 rows in") == 1

    visiting(FakeConsole(a_pipeline()), scenario)


def test_the_busiest_node_is_the_slowest_where_nothing_holds_the_job_up():
    calm = OperatorMetrics(node="a", rows_in=1, rows_out=1, rows_in_per_s=1.0, rows_out_per_s=1.0, busy_share=0.1)
    busy = replace(calm, node="b", busy_share=0.4)
    assert slowest_of(JobMetrics(job_id="j", operators=(calm, busy))) == "b"
    assert slowest_of(JobMetrics(job_id="j", operators=(replace(calm, busy_share=0.0),))) is None
    assert slowest_of(JobMetrics(job_id="j")) is None


def test_a_table_of_state_is_read_by_key_and_compared_with_an_epoch_before():
    console = FakeConsole(a_pipeline())

    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/pipelines/p1?tab=state")
        await visitor.sees("counts.a", "240 rows")
        key = visitor.element(ui.input, "Key or value (empty: all)")
        assert isinstance(key, ui.input)
        key.set_value("Ann")
        await visitor.click("Read")
        await visitor.sees("240 rows of counts.a at epoch 41")
        before = visitor.element(ui.select, "Compare with epoch")
        assert isinstance(before, ui.select)
        before.set_value(40)
        await visitor.click("Read")
        await visitor.sees("- went", "+ came", "since epoch 40")

    visiting(console, scenario)
    asked = {"node": "counts", "table": "a", "epoch": 41, "key": "Ann", "limit": 200}
    assert console.changes == [("table_rows", asked), ("table_difference", {**asked, "before": 40})]


def test_a_stopped_pipeline_is_started():
    console = FakeConsole(a_pipeline(state=State.STOPPED))

    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/pipelines/p1")
        await visitor.click("Start")
        await visitor.until(lambda: bool(console.changes))

    visiting(console, scenario)
    assert console.changes == [("p1", {"wish": Wish.START})]


def test_a_stopped_pipeline_is_deleted_once_somebody_is_sure():
    console = FakeConsole(a_pipeline(state=State.STOPPED))

    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/pipelines/p1")
        await visitor.click("Delete")
        await visitor.user.should_see("Delete shop?")
        assert console.all
        await visitor.answer("Delete")
        await visitor.until(lambda: not console.all)

    visiting(console, scenario)


def test_a_restart_is_asked_about():
    console = FakeConsole(a_pipeline())

    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/pipelines/p1")
        await visitor.click("Restart")
        await visitor.user.should_see("Restart the pipeline?")
        await visitor.click("Cancel")
        assert not console.changes

    visiting(console, scenario)


def test_a_job_is_rescaled():
    console = FakeConsole(a_pipeline())

    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/pipelines/p1")
        await visitor.click("Rescale")
        await visitor.user.should_see("Rescale the pipeline")
        number = visitor.element(ui.number, "Subtasks")
        assert isinstance(number, ui.number)
        number.set_value(3)
        await visitor.answer("Rescale")
        await visitor.until(lambda: bool(console.changes))

    visiting(console, scenario)
    assert console.changes == [("p1", {"parallelism": 3})]


def test_who_may_only_read_has_no_buttons_that_change():
    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/pipelines/p1")
        await visitor.sees("Slowest")
        assert not set(visitor.buttons) & {"Start", "Stop", "Restart", "Rescale", "Edit", "Delete"}
        await visitor.open("/pipelines/p1?tab=letters")
        await visitor.sees("negative")
        assert "Replay" not in visitor.buttons

    visiting(FakeConsole(a_pipeline()), scenario, role=Role.READ)


def test_a_replay_can_be_tried_first():
    console = FakeConsole(a_pipeline())

    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/pipelines/p1?tab=letters")
        await visitor.sees("negative")
        await visitor.click("Try")
        await visitor.sees("would replay 2 letters")

    visiting(console, scenario)
    assert console.changes == [("replay_letters", {"node": None, "error": None, "is_dry_run": True})]


def test_what_is_refused_is_told_in_words():
    console = FakeConsole(a_pipeline(state=State.STOPPED))

    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/pipelines/p1")
        console.refuses = ConflictError("another server supervises it", allowed=["look at it"])
        await visitor.click("Start")
        await visitor.until(lambda: bool(visitor.user.notify.messages))
        assert visitor.user.notify.messages == ["another server supervises it Allowed: look at it."]

    visiting(console, scenario)


def test_a_pipeline_that_is_not_there_has_a_page_that_says_so():
    async def scenario(visitor: Visitor) -> None:
        await visitor.open("/pipelines/none")
        await visitor.sees("there is no pipeline 'none'")
        assert "/" in visitor.markup.links

    visiting(FakeConsole(), scenario)
