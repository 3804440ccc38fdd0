"""OpenLineage is told what jobs read and write, and how they end, over HTTP; and never at the cost of a job."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_openlineage import lineage
from arroyo_openlineage.lineage import Lineage

from arroyo_core import Pipeline, Stream
from arroyo_core.api import Dataset
from arroyo_core.cli.main import main
from arroyo_core.runtime.local import LocalExecutor


class Catalogue:
    """A server that records what it is sent."""

    def __init__(self, status: int = 200) -> None:
        self.events: list[dict[str, Any]] = []
        events = self.events

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                events.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(status)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                return

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    @property
    def types(self) -> list[str]:
        return [event["eventType"] for event in self.events]


@pytest.fixture
def catalogue() -> Iterator[Catalogue]:
    found = Catalogue()
    yield found
    found.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"price": [1, 200, 300]}), tmp_path / "in" / "bids.parquet")
    return tmp_path


def bids(folder: Path, *, predicate: str = "price > 100", **settings: Any) -> Pipeline:
    source = Stream.source("filesystem.source", path=folder / "in", format="parquet", id="bids")
    end = source.filter(predicate).sink("filesystem.sink", path=folder / "out", format="parquet", id="files")
    return Pipeline.build(end, name="hot", **settings)


def test_a_run_tells_what_it_reads_and_writes_and_that_it_is_complete(catalogue: Catalogue, folder: Path) -> None:
    pipeline = bids(folder)
    with Lineage([pipeline.plan], url=catalogue.url, namespace="shop") as listener:
        pipeline.run(executor=LocalExecutor(pipeline.plugins), listener=listener)
    assert catalogue.types == ["START", "COMPLETE"]
    start, end = catalogue.events
    assert start["run"]["runId"] == end["run"]["runId"]
    assert (start["job"]["namespace"], start["job"]["name"]) == ("shop", "hot")
    assert start["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
    (read,), (written,) = end["inputs"], end["outputs"]
    assert (read["namespace"], read["name"]) == ("file", str(folder / "in"))
    assert (written["namespace"], written["name"]) == ("file", str(folder / "out"))
    assert [each["name"] for each in read["facets"]["schema"]["fields"]] == ["price"]
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 2


def test_a_job_that_fails_says_with_what(catalogue: Catalogue, folder: Path) -> None:
    pipeline = bids(folder, predicate="1 / (price - 1) > 0")
    with pytest.raises(Exception, match=r"[Dd]ivide"), Lineage([pipeline.plan], url=catalogue.url) as listener:
        pipeline.run(executor=LocalExecutor(pipeline.plugins), listener=listener)
    assert catalogue.types == ["START", "FAIL"]
    message = catalogue.events[-1]["run"]["facets"]["errorMessage"]["message"]
    assert message.startswith("operator ")
    assert message.endswith("; the log of the job has its message")


def test_a_long_run_says_so_now_and_then(catalogue: Catalogue, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage, "PERIOD_S", 0.0)
    pipeline = bids(folder)
    with Lineage([pipeline.plan], url=catalogue.url) as listener:
        pipeline.run(executor=LocalExecutor(pipeline.plugins), listener=listener)
    assert catalogue.types == ["START", "RUNNING", "COMPLETE"]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_catalogue_that_fails_or_is_gone_does_no_harm(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    refusing = Catalogue(status=400)
    if not is_there:
        refusing.close()
    pipeline = bids(folder)
    monkeypatch.setattr("arroyo_openlineage.sending.GRACE_S", 60.0)
    with Lineage([pipeline.plan], url=refusing.url) as listener:
        assert pipeline.run(executor=LocalExecutor(pipeline.plugins), listener=listener).is_finished
    warnings = [record.message for record in caplog.records if "OpenLineage" in record.message]
    assert len(warnings) == 1
    assert "could not be sent" in warnings[0]
    if is_there:
        refusing.close()


def test_the_command_tells_of_its_job(catalogue: Catalogue, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "hot.yaml"
    file.write_text(bids(folder).to_yaml())
    assert main(["run", str(file), "--in-process", "--openlineage", catalogue.url]) == 0
    assert catalogue.types == ["START", "COMPLETE"]
    assert catalogue.events[0]["job"]["namespace"] == "arroyo"


def test_the_command_tells_of_a_failure(catalogue: Catalogue, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "hot.yaml"
    file.write_text(bids(folder, predicate="1 / (price - 1) > 0").to_yaml())
    assert main(["run", str(file), "--in-process", "--openlineage", catalogue.url]) != 0
    assert catalogue.types == ["START", "FAIL"]


def test_without_the_option_nothing_is_sent(
    catalogue: Catalogue, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", catalogue.url)
    file = folder / "hot.yaml"
    file.write_text(bids(folder).to_yaml())
    assert main(["run", str(file), "--in-process"]) == 0
    assert catalogue.events == []


def test_the_client_finds_its_own_settings(catalogue: Catalogue, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", catalogue.url)
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "mine")
    file = folder / "hot.yaml"
    file.write_text(bids(folder).to_yaml())
    assert main(["run", str(file), "--in-process", "--openlineage"]) == 0
    assert catalogue.types == ["START", "COMPLETE"]
    assert catalogue.events[0]["job"]["namespace"] == "mine"


@pytest.mark.parametrize(
    ("url", "dataset"),
    [
        ("/data/in", Dataset("file", "/data/in")),
        ("file:///data/in", Dataset("file", "/data/in")),
        ("s3://bucket/orders/2026/", Dataset("s3://bucket", "orders/2026")),
        ("s3://bucket", Dataset("s3://bucket", "/")),
        ("sftp://me:secret@host:22/in", Dataset("sftp://host:22", "in")),
    ],
)
def test_files_are_named_by_the_rules_of_openlineage(url: str, dataset: Dataset) -> None:
    assert Dataset.at(url) == dataset
