"""The examples of the documentation of state run as they are written."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pyarrow.parquet as pq
from arroyo_testing import run_in_process

DOCS = Path(__file__).parents[3] / "docs"


def test_the_examples_of_state_tables_run():
    text = (DOCS / "state-tables.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 7
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "state-tables.md", "exec"), names)


PIPELINE = """\
name: job
checkpoint: {url: STATE, rows: 300}
nodes:
  - {id: bids, operator: nexmark.source, config: {events: 1000, fields: [auction, date_time]}}
  - {id: timed, operator: std.watermark, inputs: [bids]}
  - id: windows
    operator: std.tumbling_window
    inputs: [timed]
    config: {size: 1h, keys: [auction], aggregates: [{function: count}]}
  - id: totals
    operator: std.updating_aggregate
    inputs: [bids]
    config: {keys: [auction], aggregates: [{function: count}]}
  - {id: out, operator: filesystem.sink, inputs: [windows], config: {path: OUT}}
  - {id: nothing, operator: std.blackhole, inputs: [totals]}
"""


def described_columns(heading):
    """The names and types in the table that follows a heading of the page."""
    text = (DOCS / "state-format.md").read_text(encoding="utf-8")
    table = text[text.index(heading) :].split("\n\n")[1]
    return dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", table, re.MULTILINE))


def test_the_files_of_a_job_are_those_of_the_state_format(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(PIPELINE.replace("STATE", str(tmp_path / "state")).replace("OUT", str(tmp_path / "out")))
    run_in_process(path)
    text = (DOCS / "state-format.md").read_text(encoding="utf-8")
    shapes = re.findall(r"^ +(?:checkpoints/\{epoch\}/)?(?:generations/)?([\w.{}-]+\.\w+) {2,}", text, re.MULTILINE)
    patterns = [re.compile(re.sub(r"\\\{\w+\\\}", r"[\\w%.]+", re.escape(shape))) for shape in shapes]
    files = [file for file in (tmp_path / "state").rglob("*") if file.is_file()]
    seen = {pattern.pattern for file in files for pattern in patterns if pattern.fullmatch(file.name)}
    assert len(seen) == 8  # all but a request to stop and a function from Python
    for file in files:
        assert any(pattern.fullmatch(file.name) for pattern in patterns), file
        if file.suffix in {".metadata", ".marker", ".claim", ".incarnation"}:
            content = file.read_bytes()
            assert content[:8] == b"ARROYOM1"
            assert content[8:40] == hashlib.sha256(content[40:]).digest()


def test_tables_have_the_columns_that_the_state_format_describes(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(PIPELINE.replace("STATE", str(tmp_path / "state")).replace("OUT", str(tmp_path / "out")))
    run_in_process(path)

    def columns(table):
        file = pq.ParquetFile(next((tmp_path / "state").rglob(f"table-{table}-*.parquet")))
        assert file.schema_arrow.metadata == {b"version": b"0", b"arroyo_core.state_format": b"1"}
        assert file.metadata.row_group(0).column(0).compression == "ZSTD"
        hashes = file.read().column("_key_hash").to_pylist()
        assert hashes == sorted(hashes)
        return {field.name: str(field.type) for field in file.schema_arrow}

    assert columns("bids-s") == described_columns("A **global keyed table**")
    expiring = described_columns("An **expiring table**")
    generational, plain = columns("totals-a"), columns("windows-t")
    assert {name: generational[name] for name in expiring} == expiring
    assert {name: plain.get(name) for name in expiring} == {**expiring, "_generation": None}
