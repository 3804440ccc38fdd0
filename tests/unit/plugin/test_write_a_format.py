"""docs/write-a-format.md: a format of another distribution, used from a connector that knows nothing of it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import pytest

from ...document_pages import ROOT, read_commands, read_steps

pytestmark = pytest.mark.once

PAGE = ROOT / "docs" / "write-a-format.md"
STEPS = read_steps(PAGE)
#: A block of text is for readers only, but this one is also a file.
LINES = PAGE.read_text(encoding="utf-8").partition("# logs/today.logfmt\n")[2].partition("```")[0]
READ = """
import json, sys
import pyarrow as pa
from arroyo_formats import find_format
acme = find_format("logfmt")
schema = acme.schema(acme.settings_type(), pa.schema([("level", pa.string()), ("ms", pa.int64())]))
written = acme.writer(None, schema).write(pa.RecordBatch.from_pydict({"level": ["a", None], "ms": [1, 2]}, schema))
decoded = acme.reader(None, schema).read([*written.messages.to_pylist(), b"ms=x", b"no", b"ms=5"])
print(json.dumps([decoded.batch.to_pylist(), decoded.origins.tolist(), [bad.index for bad in decoded.bad]]))
"""


@pytest.fixture
def run(tmp_path):
    """Runs Python in a folder with the files of the page, where its distribution is installed."""
    for step in STEPS:
        if step.name is not None:
            path = tmp_path / step.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text, encoding="utf-8")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "today.logfmt").write_text(LINES)
    info = tmp_path / "acme" / "acme_logfmt-1.0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-logfmt\nVersion: 1.0.0\n")
    (info / "entry_points.txt").write_text("[arroyo_core]\nlogfmt = acme_logfmt\n")

    def python(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "acme")}
        return subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    return python


def test_the_page_runs_as_it_is_written(run, tmp_path):
    for step in STEPS:
        for command in read_commands(step.text) if step.kind == "console" else ():
            _, *arguments = shlex.split(command.line)
            options = ["--in-process"] if arguments[0] == "run" else []
            done = run("-m", "arroyo_core", *arguments, *options)
            assert done.returncode == 0, done.stderr
            command.check(done.stdout if arguments[0] == "validate" else done.stdout + done.stderr)
    (written,) = (tmp_path / "out").glob("part-*.logfmt")
    assert written.read_text().splitlines() == [
        'level="info" path="/cart" ms="12"',
        'level="warn" path="/check out" ms="913"',
        'level="info" path="/" ms="3"',
    ]


def test_messages_are_read_and_written(run):
    rows, origins, bad = json.loads(run("-c", READ).stdout)
    assert rows == [{"level": "a", "ms": 1}, {"level": None, "ms": 2}, {"level": None, "ms": 5}]
    assert (origins, bad) == ([0, 1, 4], [2, 3])


def test_tools_list_it_and_mistakes_name_it(run, tmp_path):
    assert "logfmt: Pairs of key=value" in run("-m", "arroyo_core", "docs", "filesystem.source").stdout
    schema = run("-m", "arroyo_core", "schema").stdout
    assert '"logfmt"' in schema
    pipeline = tmp_path / "logs.yaml"
    pipeline.write_text(pipeline.read_text().replace("format: logfmt", "format: logfmd"))
    assert "did you mean logfmt?" in run("-m", "arroyo_core", "validate", "logs.yaml").stderr.lower().replace("'", "")
    pipeline.write_text(pipeline.read_text().replace("format: logfmd", "format: {name: logfmt, level: 3}"))
    assert "there is no setting 'level' of this format" in run("-m", "arroyo_core", "validate", "logs.yaml").stderr
