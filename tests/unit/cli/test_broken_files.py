"""Every file of tests/broken says in its first lines which mistakes it has, and where."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / "tests" / "broken").glob("*.yaml"))
SECRET = "hunter2-swordfish"
EXPECTATION = re.compile(rb"# expect (\d+):(\d+): (.+)")

# One process for all files: starting Python costs more than checking a file.
CHECK_ALL = """
import contextlib, io, json, sys
from arroyo_core.cli.main import main

answers = {}
for file in sys.argv[1:]:
    shown, listed = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(shown):
        code = main(["validate", file])
    with contextlib.redirect_stdout(listed):
        main(["validate", "--format", "json", file])
    answers[file] = {"code": code, "stderr": shown.getvalue(), "mistakes": json.loads(listed.getvalue())}
print(json.dumps({"answers": answers, "pyspark": "pyspark" in sys.modules}))
"""


@pytest.fixture(scope="module")
def checked():
    variables = {**os.environ, "ARROYO_TEST_SECRET": SECRET}
    variables.pop("ARROYO_TEST_UNSET", None)
    names = [str(file.relative_to(ROOT)) for file in FILES]
    command = [sys.executable, "-c", CHECK_ALL, *names]
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def expectations(file):
    lines = file.read_bytes().splitlines()
    matches = [match for line in lines if (match := EXPECTATION.fullmatch(line))]
    return [(int(match[1]), int(match[2]), match[3].decode()) for match in matches]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_mistake_is_reported_at_its_place_and_nothing_else(file, checked):
    name = str(file.relative_to(ROOT))
    answer = checked["answers"][name]
    expected = expectations(file)
    assert expected, "the file says nothing about what it expects"
    found = [(mistake["line"], mistake["column"], mistake["message"]) for mistake in answer["mistakes"]]
    assert [place[:2] for place in found] == [place[:2] for place in expected], found
    for (_, _, message), (_, _, fragment) in zip(found, expected, strict=True):
        assert fragment in message
    assert answer["code"] == 2
    for line, column, fragment in expected:
        assert re.search(
            rf"^{re.escape(name)}:{line}:{column}: .*{re.escape(fragment)}", answer["stderr"], re.MULTILINE
        )
    assert "Traceback" not in answer["stderr"]
    assert SECRET.partition("-")[0] not in answer["stderr"] + json.dumps(answer["mistakes"])


def test_checking_a_pipeline_does_not_import_pyspark(checked):
    assert not checked["pyspark"]


def test_there_are_broken_files():
    assert len(FILES) > 60
