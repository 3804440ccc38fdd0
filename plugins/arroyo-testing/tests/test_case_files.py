"""Files of tests: where they are, how they are updated and recorded, and what is written about them."""

import itertools
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from arroyo_testing.cases.operators import CaptureSink

from arroyo_core.state import get_storage_provider

from .case_pipelines import EVEN

TESTS = """\
# Numbers.
tests:
  - name: first     # of two
    rows: {numbers: [{counter: 2}, {counter: 4}]}
    expect:
      even:
        # This one is right,
        - {counter: 2}     # as everybody knows,
        # this one is not.
        - counter: 5
      out: [{counter: 4}, {counter: 2}]
      numbers: {count: 1}  # or two?
  - name: second
    rows: {numbers: [{counter: 6}, {counter: 7}]}
    expect: {even: [], out: {in_order: [{counter: 8}]}}
  - name: third
    rows: {numbers: [{counter: 1}]}
    expect:
      even:
        # Nothing.
        - {counter: 1}
      out: []
# The end.
"""

UPDATED = """\
# Numbers.
tests:
  - name: first     # of two
    rows: {numbers: [{counter: 2}, {counter: 4}]}
    expect:
      even:
        # This one is right,
        - {counter: 2}     # as everybody knows,
        - {counter: 4}
      out: [{counter: 4}, {counter: 2}]
      numbers: {count: 2}  # or two?
  - name: second
    rows: {numbers: [{counter: 6}, {counter: 7}]}
    expect: {even: [{counter: 6, subtask_index: null, timestamp: null}], out: {in_order: [{counter: 6}]}}
  - name: third
    rows: {numbers: [{counter: 1}]}
    expect:
      even: []
        # Nothing.
      out: []
# The end.
"""


@pytest.fixture
def pair(write):
    """A pipeline, and a file of tests beside it."""
    return write(EVEN, "even.yaml"), write(TESTS, "even_test.yaml")


def test_tests_are_found_by_their_pipeline_their_file_and_their_folder(pair, write, run_tests, tmp_path):
    pipeline, tests = pair
    tests.write_text("tests: [{name: x, rows: {numbers: [{counter: 2}]}, expect: {even: {count: 1}}}]\n")
    write(EVEN + "tests: [{name: inside, rows: {}, expect: {even: []}}]\n", "other.yml")
    for path, count in ((pipeline, 1), (tests, 1), (tmp_path, 2)):
        code, out, err = run_tests(path)
        assert code == 0, out + err
        assert out.endswith(f"{count} test{'s' if count > 1 else ''}, all passed\n")
    assert run_tests(pipeline, tests)[1].count("ok    x") == 1


def test_update_changes_what_was_wrong_and_nothing_else(pair, run_tests):
    pipeline, tests = pair
    assert run_tests(pipeline)[0] == 1
    assert tests.read_text() == TESTS
    code, out, _ = run_tests(pipeline, "--update")
    assert code == 0
    assert "new   first  (2 expectations updated)" in out
    assert tests.read_text() == UPDATED
    assert run_tests(pipeline)[0] == 0
    assert run_tests(pipeline, "--update")[0] == 0
    assert tests.read_text() == UPDATED


def test_update_writes_long_lists_as_lines(write, run_tests):
    rows = ", ".join(f"{{counter: {2 * number}}}" for number in range(12))
    head = f"tests:\n  - name: x\n    rows: {{numbers: [{rows}]}}\n    expect:\n"
    write(EVEN, "even.yaml")
    tests = write(f"{head}      even: [{{counter: 0}}]   # all\n", "even_test.yaml")
    assert run_tests(tests, "--update")[0] == 0
    lines = "\n".join(f"        - {{counter: {2 * number}}}" for number in range(12))
    assert tests.read_text() == f"{head}      even:\n{lines}   # all\n"


def test_what_an_alias_stands_for_is_not_updated(write, run_tests):
    write(EVEN, "even.yaml")
    text = """\
tests:
  - name: x
    rows: {numbers: &rows [{counter: 2}, {counter: 3}]}
    expect: {even: *rows}
"""
    tests = write(text, "even_test.yaml")
    code, _, err = run_tests(tests, "--update")
    assert code == 2
    assert "what is expected of even cannot be updated: it is an alias" in err
    assert tests.read_text() == text


def test_a_recorded_test_passes_and_repeats_the_first_rows(write, run_tests, tmp_path):
    pipeline = write(EVEN, "even.yaml")
    code, out, err = run_tests(pipeline, "--record", "--rows", 5)
    assert code == 0, err
    recorded = tmp_path / "even_test.yaml"
    assert out == f"{recorded}: recorded\n"
    text = recorded.read_text()
    assert text.count("- {counter: ") == 5 + 3
    assert run_tests(pipeline)[0] == 0
    recorded.write_text(
        text.replace("expect:\n      out:\n        - {counter: 0", "expect:\n      out:\n        - {counter: 8")
    )
    assert recorded.read_text() != text
    assert run_tests(pipeline)[0] == 1
    code, _, err = run_tests(pipeline, "--record")
    assert code == 2
    assert "is there already" in err


def test_tools_read_the_results(pair, run_tests, write):
    code, out, _ = run_tests(*pair, "--format", "json")
    assert code == 1
    results = json.loads(out)
    assert results["failed"] == 3
    assert [test["name"] for test in results["tests"]] == ["first", "second", "third"]
    assert "1 row missing" in results["tests"][0]["failure"]
    code, out, _ = run_tests(write(EVEN, "other.yaml"), "--record", "--format", "json")
    assert [Path(file).name for file in json.loads(out)["recorded"]] == ["other_test.yaml"]
    code, out, _ = run_tests(write(EVEN, "other.yaml"), "--crash-all", "--format", "json")
    assert code == 0
    whole, crashed = json.loads(out)["tests"]
    assert (whole["is_passed"], whole["failure"], whole["crashes"]) == (True, None, None)
    assert crashed["crashes"] > crashed["storage_calls"] / 2 > 0


def test_results_are_written_for_build_servers(pair, run_tests, tmp_path):
    run_tests(*pair, "--junit-xml", tmp_path / "results.xml")
    suites = ElementTree.parse(tmp_path / "results.xml").getroot()
    (suite,) = suites
    assert (suite.get("tests"), suite.get("failures")) == ("3", "3")
    assert [case.get("name") for case in suite] == ["first", "second", "third"]
    assert "1 row missing" in suite[0][0].get("message")


@pytest.mark.parametrize(("pattern", "names"), [("first", ["first"]), ("S*D", ["second"]), ("ir", ["first", "third"])])
def test_a_pattern_chooses_tests_by_their_names(pair, run_tests, pattern, names):
    out = run_tests(pair[0], "-k", pattern)[1]
    assert [name for name in ("first", "second", "third") if f"  {name}  (" in out] == names


CRASHES = """\
tests:
  - name: numbers
    steps:
      - rows: {numbers: [{counter: 2}]}
      - restart
      - rows: {numbers: [{counter: 4}]}
    expect: {even: [{counter: 2}, {counter: 4}]}
"""


def test_every_crash_is_as_if_nothing_had_happened(write, run_tests):
    write(EVEN, "even.yaml")
    code, out, err = run_tests(write(CRASHES, "even_test.yaml"), "--crash-all")
    assert code == 0, out + err
    found = re.search(r"numbers: (\d+) crashes at (\d+) storage calls: all as if nothing had happened", out)
    assert found, out
    crashes, calls = map(int, found.groups())
    assert crashes > calls > 60
    assert out.endswith("2 tests, all passed\n")


def test_a_crash_that_changes_the_result_is_told(write, run_tests, monkeypatch):
    numbers = itertools.count()

    def commit_anew(self, epoch, commit_data, ctx):
        # A sink that writes the same rows once more when it is told twice.
        storage = get_storage_provider(self._config.url)
        for rows in commit_data.get("rows", {}).values():
            storage.write(f"{self._config.name}/{epoch}-{next(numbers)}.arrow", rows)

    monkeypatch.setattr(CaptureSink, "handle_commit", commit_anew)
    write(EVEN, "even.yaml")
    tests = write(
        "tests: [{name: x, rows: {numbers: [{counter: 2}]}, expect: {even: [{counter: 2}]}}]\n", "even_test.yaml"
    )
    code, out, _ = run_tests(tests, "--crash-all")
    assert code == 1
    assert "changed the result" in out
    found = r"after call \d+ of process 1 \(write .*\): out: rows lost: 0, rows that should not have come: 1"
    assert re.search(found, out), out
