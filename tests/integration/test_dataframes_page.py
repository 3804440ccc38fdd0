"""docs/dataframes.md runs as it is written, in a session of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ..document_pages import ROOT, read_steps

PAGE = ROOT / "docs" / "dataframes.md"


@pytest.mark.timeout(900)
def test_the_page_runs_as_one_program(tmp_path):
    steps = read_steps(PAGE)
    assert not [step for step in steps if step.reason or step.service]
    for step in steps:
        if step.name is not None:
            (tmp_path / step.name).write_text(step.text)
    program = "\n".join(step.text for step in steps if step.kind == "python" and step.name is None)
    assert program
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
