from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_filesystem.filesystem_pb2 import SinkConfig
from arroyo_testing import run_in_process
from google.protobuf.struct_pb2 import Value

from arroyo_core.api import Registry
from arroyo_core.api.config_defaults import with_defaults
from arroyo_core.api.policy import PlanningPolicy, in_force
from arroyo_core.cli.main import main
from arroyo_core.plugin import installed_plugins
from tests.document_pages import ROOT, read_commands, read_steps

README = ROOT / "plugins" / "arroyo-filesystem" / "README.md"

PIPELINE = """
name: copy
parallelism: 2
checkpoint: {{rows: 100, interval: 1h}}
nodes:
  - id: in
    operator: filesystem.source
    config:
      path: {source}
      format: json
      schema: {{n: int64, t: timestamp, s: string}}
      event_time_field: t
      bad_data: dead_letter
      dead_letter: {letters}
      split_size: 500
      batch_rows: 10
  - id: out
    operator: filesystem.sink
    inputs: [in]
    config: {{path: {target}, partition_by: [s], max_file_size: 1MiB}}
"""


def test_the_plugin_is_found_by_its_entry_point() -> None:
    constructors = installed_plugins().registry.constructors
    assert {"filesystem.source", "filesystem.sink"} <= set(constructors)


def test_importing_the_plugin_imports_no_client_library() -> None:
    code = (
        "import sys, arroyo_filesystem.plugin; "
        "print([m for m in ('fsspec', 's3fs', 'pyarrow.parquet', 'pyarrow.csv', 'pyspark') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", ["s3://bucket/out", "memory://out", "https://example.org/out"])
def test_a_sink_on_storage_that_cannot_be_opened_in_untrusted_mode_is_planned(path: str) -> None:
    constructor = installed_plugins().registry.constructors["filesystem.sink"]
    with in_force(PlanningPolicy(is_untrusted=True)):
        config = constructor.resolve(with_defaults(SinkConfig(path=path, format=Value(string_value="json"))))
        sink = constructor.with_config(config, Registry()).operator
    assert sink is not None
    assert ("path", path) in sink.display().fields


def test_a_pipeline_copies_good_rows_and_puts_bad_ones_aside(tmp_path: Path) -> None:
    source, target, letters = tmp_path / "in", tmp_path / "out", tmp_path / "letters"
    source.mkdir()
    for file in range(3):
        lines = [
            f'{{"n": {n}, "t": "2026-01-01T00:00:{n % 60:02}Z", "s": "k{n % 3}"}}' if n % 50 else f"bad {n}"
            for n in range(file * 200, file * 200 + 200)
        ]
        (source / f"{file}.json").write_text("\n".join(lines))
    pipeline = tmp_path / "copy.yaml"
    pipeline.write_text(PIPELINE.format(source=source, target=target, letters=letters))
    run_in_process(pipeline)
    rows: list[dict[str, Any]] = []
    for path in target.rglob("part-*.parquet"):
        key = path.parent.name.removeprefix("s=")
        rows += [{**row, "s": key} for row in pq.ParquetFile(path).read().to_pylist()]
    assert sorted(row["n"] for row in rows) == [n for n in range(600) if n % 50]
    assert all(row["s"] == f"k{row['n'] % 3}" for row in rows)
    bad = [line for path in letters.glob("bad-*") for line in path.read_text().splitlines()]
    assert len(bad) == 12
    assert not list(tmp_path.rglob("_arroyo_staging"))


def test_a_written_folder_is_a_source_of_the_next_pipeline(files: Any, tmp_path: Path) -> None:
    table = pa.table({"n": list(range(10))})
    files.write(tmp_path, table, format="arrow", compression="zstd")
    assert files.read(tmp_path).equals(table)


def run(line: str) -> str:
    """What a command prints, to stdout and stderr together."""
    name, *arguments = shlex.split(line)
    assert name == "arroyo", line
    if arguments[0] == "run":
        arguments.append("--in-process")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        assert main(arguments) == 0, printed.getvalue()
    return printed.getvalue()


def test_the_pipeline_of_the_readme_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    commands = []
    for step in read_steps(README):
        if step.name is not None:
            (tmp_path / step.name).write_text(step.text, encoding="utf-8")
        elif step.kind == "console":
            for command in read_commands(step.text):
                commands.append(command.line)
                command.check(run(command.line))
        elif step.kind == "python":
            exec(compile(step.text, "README.md", "exec"), names)
    assert len(commands) == 1
    assert all(
        re.fullmatch(r"orders_\d{8}T\d{6}Z_[0-9a-f]{32}\.parquet", path.name) for path in Path("out").glob("p*/*")
    )


def test_the_settings_of_the_readme_run_as_a_pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = "".join(step.text for step in read_steps(README) if step.kind == "yaml" and step.name is None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "a.csv").write_text(
        "id,placed_at,country,total\n1,2026-01-01T00:00:00Z,NL,9.50\n2,never,NL,1.00\n3,2026-01-02,DE,2.25\n"
    )
    (tmp_path / "readme.yaml").write_text(f"name: readme\nnodes:\n{nodes}".replace("s3://acme/orders", "./out"))
    run_in_process(tmp_path / "readme.yaml")
    written = {path.parent.name: pq.ParquetFile(path).read() for path in (tmp_path / "out").rglob("part-*")}
    assert {folder: table["id"].to_pylist() for folder, table in written.items()} == {
        "country=NL": [1],
        "country=DE": [3],
    }
    (letters,) = (tmp_path / "orders_bad").glob("bad-*.jsonl")
    assert '"line":3' in letters.read_text()
