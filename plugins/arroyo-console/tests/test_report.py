"""`arroyo report`: one file that shows what a job did, and nothing that it must not show."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from arroyo_console.report.facts import Epoch, ReportedNode, RunFacts, Trouble, read_run
from arroyo_console.report.page import render_report

from arroyo_core.cli.exits import OK
from arroyo_core.cli.job_states import JobState
from arroyo_core.cli.main import main
from arroyo_core.state import ParquetBackend, get_storage_provider
from arroyo_core.state.inspection import CheckpointSummary

PIPELINE = """\
name: counted
checkpoint: {url: state, rows: 100, interval: 300ms}
nodes:
  - {id: numbers, operator: impulse.source, config: {count: 1000}}
  - {id: odd, operator: std.filter, inputs: [numbers], config: {predicate: 'counter % 2 = 1'}}
  - {id: out, operator: std.blackhole, inputs: [odd]}
"""
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


class Page(HTMLParser):
    """The elements of a page, and what is read in it."""

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
        return " ".join(self.texts)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def job(folder):
    path = folder / "counted.yaml"
    path.write_text(PIPELINE)
    assert main(["run", str(path), "--in-process", "--progress", "none"]) == OK
    return path


def reported(*arguments: str) -> str:
    assert main(["report", *arguments, "-o", "report.html"]) == OK
    return Path("report.html").read_text()


@pytest.mark.parametrize("place", ["counted.yaml", "state", "state#counted", "state/counted"])
def test_a_job_is_named_as_status_takes_it(job, place):
    page = Page(reported(place))
    assert ("h1", {}) in page.elements
    assert page.texts[page.texts.index("counted: report") :]
    assert "Checkpoints" in page.texts


def test_the_report_has_graph_rates_epochs_and_checkpoints(job):
    page = Page(reported("state"))
    backend = ParquetBackend(get_storage_provider("state"), "counted")
    facts = read_run(backend, now_us=0)
    assert [node.id for node in facts.nodes] == ["numbers", "odd", "out"]
    assert sum(1 for tag, _ in page.elements if tag == "svg") >= 5
    for text in ("numbers", "impulse.source", "odd", "std.filter", "out", "slowest"):
        assert text in page.text
    epochs = [str(epoch.checkpoint.epoch) for epoch in facts.epochs]
    assert epochs
    assert set(epochs) <= set(page.texts)
    rows = sum(int((epoch.numbers or {})["source_rows"]) for epoch in facts.epochs)
    assert rows > 0
    assert facts.state.state == "finished"


def test_a_report_is_one_file_without_scripts(job):
    page = Page(reported("state"))
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "link", "img", "iframe", "object", "form"}
    for tag, attributes in page.elements:
        assert not any(name.startswith("on") for name in attributes), tag
        if tag != "svg":
            assert not any("//" in (value or "") for value in attributes.values()), attributes


def test_what_a_job_says_is_text(job):
    facts = RunFacts(
        state=JobState(
            job=EVIL, url=EVIL, state="failed", error=EVIL, host=EVIL, pid=1, operators={EVIL: {"warnings": [EVIL]}}
        ),
        epochs=[
            Epoch(
                checkpoint=CheckpointSummary(epoch=1, is_committed=True, error=EVIL),
                numbers={
                    "operators": {EVIL: {"rows_in": 1, "rows_out": 1, "busy_share": 0.5}},
                    "source_rows": 1,
                    "duration_s": 1.0,
                    "checkpoint_bytes": 1,
                    "state_bytes": 1,
                    "backlog": 0,
                    "watermark_us": None,
                    "is_final": False,
                    "checkpoint_s": 0.1,
                },
            )
        ],
        nodes=[ReportedNode(id=EVIL, operator=EVIL, inputs=[]), ReportedNode(id="b", operator="x", inputs=[EVIL])],
        troubles=[Trouble(epoch=1, what="failed", reason=EVIL)],
    )
    page = Page(render_report(facts, now_us=0, hide=lambda text: text))
    assert not any(tag in {"script", "img"} for tag, _ in page.elements)
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert page.text.count(EVIL) >= 5


def test_secrets_are_hidden(folder, monkeypatch):
    monkeypatch.setenv("SHOP_PASSWORD", "tulips-and-herrings")
    path = folder / "shop.yaml"
    path.write_text(PIPELINE.replace("counted", "shop").replace("'counter % 2 = 1'", "\"'${SHOP_PASSWORD}' <> 'x'\""))
    assert main(["run", str(path), "--in-process", "--progress", "none"]) == OK
    fail_with(folder, "refused: postgres://me:sesame@host/db password=opensesame; was tulips-and-herrings")
    of_url = reported("state")
    assert "refused" in of_url
    assert "sesame" not in of_url
    of_file = reported("shop.yaml")
    assert "refused" in of_file
    assert "sesame" not in of_file
    assert "tulips-and-herrings" not in of_file


def fail_with(folder, error: str) -> None:
    """As if the driver had ended so."""
    import msgspec

    (path,) = folder.glob("state/*/generations/*.status")
    status = msgspec.json.decode(path.read_bytes())
    path.write_bytes(msgspec.json.encode({**status, "ending": "failed", "error": error}))


def test_a_job_without_epochs_says_so():
    facts = RunFacts(state=JobState(job="new", url="state", state="not started"), epochs=[], nodes=[], troubles=[])
    page = Page(render_report(facts, now_us=0, hide=lambda text: text))
    assert "No epoch has been committed yet." in page.text
    assert "Nothing went wrong" in page.text


def test_a_job_that_is_not_there_is_an_error(folder, capsys):
    (folder / "state").mkdir()
    assert main(["report", "state", "-o", "report.html"]) != OK
    assert "no checkpoint below" in capsys.readouterr().err
    assert not (folder / "report.html").exists()
