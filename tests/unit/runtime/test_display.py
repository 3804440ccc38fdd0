"""What notebooks show of pipelines, jobs and rows; nothing of it is taken as HTML."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from arroyo_core import Pipeline, Stream
from arroyo_core.pipeline.plan import Plan
from arroyo_core.runtime.display import MAX_COLUMNS, MAX_ROWS
from arroyo_core.runtime.handle import JobProgress, JobState, NodeRows
from arroyo_core.runtime.local import LocalExecutor

EVIL = '<script>alert("x")</script><img src=x onerror=alert(1)>'


class Tags(HTMLParser):
    """The tags and attributes of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


OWN_TAGS = {"b", "details", "div", "img", "pre", "summary", "table", "tbody", "td", "th", "thead", "tr"}


def checked(page: str | None) -> Tags:
    assert page is not None
    found = Tags(page)
    assert found.tags <= OWN_TAGS
    assert found.attributes <= {"alt", "open", "src", "style"}
    return found


def pipeline(**settings: Any) -> Pipeline:
    source = Stream.source("impulse.source", count=10, id="numbers")
    end = source.project({EVIL: "counter", "n": f"'{EVIL}'"}, id="named").blackhole(id="out")
    return Pipeline.build(end, name="job", **settings)


def test_a_pipeline_shows_its_graph_and_its_nodes() -> None:
    shown = pipeline()
    page = shown._repr_html_()
    found = checked(page)
    assert "numbers" in found.text
    assert EVIL in found.text
    svg = base64.b64decode(re.search(r"base64,([^\"]+)", page or "")[1]).decode()  # type: ignore[index]
    assert {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()}.isdisjoint(
        {"script", "foreignObject", "img"}
    )
    assert shown._repr_svg_() == svg


def test_without_a_plugin_that_draws_there_is_a_table() -> None:
    shown = pipeline()
    nobody = SimpleNamespace(hooks=SimpleNamespace(call_one=lambda *_, **__: None))
    page = replace(shown, plugins=nobody)._repr_html_()  # type: ignore[arg-type]
    assert "img" not in checked(page).tags
    assert replace(shown, plugins=nobody)._repr_svg_() is None  # type: ignore[arg-type]


def test_a_pipeline_of_a_plan_alone_shows_nothing() -> None:
    shown = replace(pipeline(), planned=None)
    assert shown._repr_html_() is None
    assert shown._repr_svg_() is None


def test_values_of_the_environment_are_not_shown() -> None:
    shown = pipeline(checkpoint="file:///tmp/${SECRET}", environment={"SECRET": "hunter2"})
    for page in (shown._repr_html_() or "", shown._repr_svg_() or ""):
        assert "hunter2" not in page
    assert "${SECRET}" in (shown._repr_html_() or "")


def test_a_job_shows_its_graph_with_the_rows_of_its_nodes() -> None:
    shown = pipeline()
    job = shown.start(executor=LocalExecutor(shown.plugins))
    job.await_end(60)
    page = job._repr_html_()
    assert "finished" in checked(page).text
    svg = base64.b64decode(re.search(r"base64,([^\"]+)", page)[1]).decode()  # type: ignore[index]
    assert "10 rows in, 10 rows out" in svg
    assert EVIL in checked(job.latest(2)._repr_html_()).text


def test_an_error_and_the_name_of_a_job_are_escaped() -> None:
    progress = JobProgress(job_id=EVIL, state=JobState.FAILED, error=f"{EVIL}\x1b[31m")
    found = checked(progress._repr_html_())
    assert found.text.count(EVIL) == 2
    assert "\x1b" not in found.text


@pytest.mark.parametrize(
    ("address", "is_linked"),
    [("http://host:4040", True), ("https://host/proxy", True), ("javascript:alert(1)", False), ("", False)],
)
def test_pages_of_spark_are_linked_if_they_are_pages(address: str, is_linked: bool) -> None:
    page = JobProgress(job_id="job", state=JobState.RUNNING, spark_ui=address)._repr_html_()
    assert (f'href="{address}"' in page) is is_linked


def test_pages_of_spark_are_not_linked_after_the_end() -> None:
    page = JobProgress(job_id="job", state=JobState.FINISHED, spark_ui="http://host:4040")._repr_html_()
    assert "Spark UI" not in page


@pytest.mark.parametrize(
    "values",
    [[EVIL], [None], [b"\xff\x00"], [{"a": [EVIL]}], pa.array([2**62], pa.timestamp("us"))],
    ids=["text", "null", "bytes", "nested", "a time that Python cannot tell"],
)
def test_rows_of_all_kinds_are_shown_and_escaped(values: Any) -> None:
    table = pa.table({EVIL: values})
    found = checked(NodeRows(node=EVIL, epoch=3, table=table)._repr_html_())
    assert EVIL in found.text
    assert "epoch 3" in found.text


def test_long_and_wide_tables_are_cut() -> None:
    table = pa.table({f"c{number}": ["x" * 5000] * 500 for number in range(MAX_COLUMNS + 10)})
    page = NodeRows(node="out", epoch=1, table=table)._repr_html_()
    assert "and 10 more columns" in page
    assert page.count("<tr>") == MAX_ROWS + 1
    assert len(page) < 3_000_000


def test_a_plan_keeps_what_may_not_be_shown_out_of_its_repr() -> None:
    assert not hasattr(Plan, "_repr_html_")
