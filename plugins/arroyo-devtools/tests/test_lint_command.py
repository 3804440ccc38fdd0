import json
from pathlib import Path

import pytest
from arroyo_devtools.lint import CODES

from arroyo_core.cli.main import main
from tests.example_files import planned_anywhere

ROOT = Path(__file__).parents[3]
FORGETFUL = """\
name: counts
parameters:
  ttl: {default: 1d, type: duration}
nodes:
  - {id: bids, operator: nexmark.source, config: {events: 1000}}
  - id: totals
    operator: std.updating_aggregate
    inputs: [bids]
    config: {keys: [bidder], aggregates: [{function: count}], ttl: "${ttl}"}
  - {id: out, operator: std.blackhole, inputs: [totals]}
"""
GREETING = """\
from arroyo_core.udf import udf

__version__ = "1"


@udf
def greet(name: str) -> str:
    return name
"""
SECRET = FORGETFUL + "checkpoint: {url: 's3://me:hunter2@host/state'}\n"


@pytest.fixture
def pipeline(tmp_path):
    def write(text, name="p.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def test_nothing_found_is_0(pipeline, capsys):
    assert main(["lint", pipeline(FORGETFUL)]) == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "1 file: 0 warnings\n")


def test_a_warning_is_1_and_shows_place_code_line_and_mend(pipeline, capsys):
    path = pipeline(FORGETFUL)
    assert main(["lint", path, "--set", "ttl=0s"]) == 1
    assert capsys.readouterr().out == (
        f"{path}:7:15: the state of 'totals' (std.updating_aggregate) has no limit: it keeps the aggregates of every "
        "key for ever [unbounded-state]\n"
        "  7 |     operator: std.updating_aggregate\n"
        "    |               ^\n"
        "      give a ttl other than 0\n\n"
    )


def test_a_mistake_is_2_and_the_other_files_are_linted(pipeline, capsys):
    bad = pipeline(FORGETFUL.replace("std.updating", "std.upadting"), "bad.yaml")
    assert main(["lint", bad, pipeline(SECRET)]) == 2
    shown = capsys.readouterr()
    assert "did you mean std.updating_aggregate?" in shown.err
    assert shown.err.endswith("2 files: 1 warning, 1 mistake\n")
    assert "[secret-in-clear]" in shown.out


def test_a_secret_is_shown_nowhere(pipeline, capsys):
    assert main(["lint", pipeline(SECRET)]) == 1
    assert main(["lint", "--format", "json", pipeline(SECRET)]) == 1
    shown = capsys.readouterr()
    assert "hunter2" not in shown.out + shown.err


def test_json_has_warnings_and_mistakes(pipeline, capsys):
    path = pipeline(FORGETFUL)
    loose = pipeline(FORGETFUL.replace("inputs: [totals]", "inputs: [bids]"), "loose.yaml")
    assert main(["lint", "--format", "json", "--set", "ttl=0s", path, loose]) == 2
    shown = capsys.readouterr()
    error, warning = json.loads(shown.out)
    assert shown.err == ""
    assert warning == {
        "severity": "warning",
        "code": "unbounded-state",
        "file": path,
        "line": 7,
        "column": 15,
        "message": warning["message"],
        "fix": "give a ttl other than 0",
    }
    assert (error["severity"], error["code"], error["line"]) == ("error", "unused-node", 6)
    assert "nothing reads the output of 'totals'" in error["message"]


def test_json_of_nothing_is_an_empty_list(pipeline, capsys):
    assert main(["lint", "--format", "json", pipeline(FORGETFUL)]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_missing_watermark_before_a_window_is_found(pipeline, capsys):
    text = FORGETFUL.replace("updating_aggregate", "tumbling_window").replace('ttl: "${ttl}"', 'size: "${ttl}"')
    assert main(["lint", pipeline(text)]) == 1
    assert "'totals' (std.tumbling_window) waits for watermarks" in capsys.readouterr().out


@pytest.fixture
def bundle(tmp_path, capsys):
    source = tmp_path / "greeting.py"
    source.write_text(GREETING)
    assert main(["udf", "build", str(source), "-o", str(tmp_path / "built")]) == 0
    capsys.readouterr()
    (built,) = (path for path in (tmp_path / "built").iterdir() if path.is_file())
    return built


def test_an_unused_bundle_is_found(pipeline, bundle, capsys):
    head = f"udfs:\n  - {{url: {bundle}, as: hi}}\n"
    assert main(["lint", pipeline(head + FORGETFUL)]) == 1
    found = capsys.readouterr().out
    assert ":2:5: no node calls a function of 'hi', which has hi.greet(name: string" in found
    assert "[unused-udf]" in found


def test_a_bundle_that_is_called_is_used(pipeline, bundle):
    called = """
name: greetings
nodes:
  - {id: people, operator: nexmark.source, config: {events: 1000, table: person}}
  - {id: greeted, operator: std.project, inputs: [people], config: {expressions: {greeting: hi.greet(name)}}}
  - {id: out, operator: std.blackhole, inputs: [greeted]}
"""
    assert main(["lint", pipeline(f"udfs:\n  - {{url: {bundle}, as: hi}}\n{called}")]) == 0


def test_the_examples_are_clean(capsys):
    examples = [str(path) for path in planned_anywhere()]
    assert examples
    assert main(["lint", *examples]) == 0, capsys.readouterr().out


def test_every_code_is_documented():
    text = (ROOT / "docs" / "lint.md").read_text()
    assert all(f"### `{code}`" in text for code in CODES)
    assert text.count("### `") == len(CODES) + 2
