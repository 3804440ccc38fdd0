"""Mistakes in tests are told with their place, the value, what is allowed, and what was probably meant."""

import pytest

from arroyo_core.cli.main import main

from .case_pipelines import EVEN


def mistakes_of(answer):
    code, _, err = answer
    assert code == 2
    return err


@pytest.mark.parametrize(
    ("test", "message", "help_text"),
    [
        ("{name: x, rows: {@numbres: []}}", "'numbres' is not a node of the pipeline", "did you mean numbers?"),
        ("{name: x, rows: {@even: []}}", "'even' is not a source", "allowed: numbers"),
        (
            "{name: x, rows: {numbers: [{@countr: 1}]}}",
            "'numbers' has no column 'countr'",
            "did you mean counter?",
        ),
        (
            "{name: x, rows: {numbers: [{counter: @a}]}}",
            "'counter' of 'numbers' must be a whole number",
            "not the string 'a'",
        ),
        ("{name: x, rows: {numbers: [{counter: @-1}]}}", "must be between 0 and", ""),
        (
            "{name: x, rows: {numbers: [{timestamp: @yesterday}]}}",
            "must be a time such as",
            "not the string 'yesterday'",
        ),
        (
            "{name: x, rows: {numbers: [@7]}}",
            "a row must be a mapping of columns and values, not the number 7",
            "",
        ),
        ("{name: x, rows: @[1]}", "'rows' must be a mapping of sources and their rows, not a list", ""),
        ("{name: x, expect: {@evn: []}}", "'evn' is not a node of the pipeline", "did you mean even?"),
        ("{name: x, expect: {@even.late: []}}", "'even' has no output 'late' beside its main one", ""),
        ("{name: x, expect: {even: {@in_ordr: []}}}", "has no key 'in_ordr'", "did you mean in_order?"),
        ("{name: x, expect: {even: [{@countr: 1}]}}", "'even' has no column 'countr'", "did you mean counter?"),
        ("{name: x, expect: {even: @{}}}", "is one of any_order, in_order, count", ""),
        ("{name: x, steps: [@chekpoint]}", "there is no step 'chekpoint'", "did you mean checkpoint?"),
        ("{name: x, steps: [{@crsh: now}]}", "a step has no key 'crsh'", "did you mean crash?"),
        (
            "{name: x, steps: [{crash: @after_commit}]}",
            "nothing crashes 'after_commit'",
            "did you mean before_commit?",
        ),
        ("{name: x, steps: [{rescale: @0}]}", "'rescale' must be between 1 and", ""),
        ("{name: x, steps: [@rescale]}", "the step 'rescale' needs a value: a number of subtasks", ""),
        ("{name: x, steps: [{advance_time: @5}]}", "has no unit", "did you mean 5s?"),
        ("{name: x, steps: [{checkpoint: @1}]}", "the step 'checkpoint' has no value: write '- checkpoint'", ""),
        ("{name: x, steps: [@{crash: ~, rescale: 2}]}", "a step has one key, not 2 (crash, rescale)", ""),
        ("{name: x, steps: [{watermark: {numbers: @soon}}]}", "the watermark of 'numbers' must be a time", ""),
        (
            "{name: x, steps: [{end: numbers}, {idle: @numbers}]}",
            "the data of 'numbers' has ended before this step",
            "",
        ),
        ("{name: x, sources: {numbers: @false}}", "must be a string", ""),
        (
            "{name: x, sources: {numbers: @reel}}",
            "a source is 'real', or has its rows in steps",
            "allowed: real",
        ),
        ("{name: x, sources: {numbers: real}, rows: {@numbers: []}}", "is a real source in this test", ""),
        ("{name: x, @tme: 2026-01-01}", "tests[0] has no key 'tme'", "did you mean time?"),
        ("{name: @x}", "the test 'x' does nothing", ""),
        ("@{rows: {}}", "tests[0] needs the key 'name'", ""),
        ("@just a text", "tests[0] must be a mapping", ""),
    ],
)
def test_a_mistake_in_a_test_is_told_where_it_is(even, tmp_path, test, message, help_text):
    # The at sign is where the mistake is.
    err = mistakes_of(even(f"- {test.replace('@', '')}\n"))
    assert f"{tmp_path / 'p.yaml'}:7:{5 + test.index('@')}: " in err
    assert message in err
    assert help_text in err


def test_all_mistakes_of_a_test_are_told_at_once(even):
    err = mistakes_of(
        even("""
        - name: x
          rows: {numbers: [{countr: 1}, {counter: a}]}
          expect: {evn: [], even: [{counter: b}]}
        """)
    )
    assert err.count("p.yaml:") == 4


def test_two_tests_cannot_have_one_name(even):
    err = mistakes_of(even("- {name: x, rows: {}}\n- {name: x, rows: {}}\n"))
    assert "p.yaml:8:12: two tests are called 'x': the first is in line 7" in err


def test_a_row_without_a_column_that_is_never_null(write, run_tests):
    path = write("""
        name: people
        nodes:
          - {id: people, operator: nexmark.source, config: {events: 10, table: person}}
          - {id: out, operator: std.blackhole, inputs: [people]}
        tests:
          - {name: x, rows: {people: [{name: Ada}]}, expect: {out: [{name: Ada}]}}
        """)
    code, out, err = run_tests(path)
    assert code == 0, out + err


def test_validate_checks_tests_too(write, capsys):
    write(EVEN, "even.yaml")
    path = write("tests: [{name: x, rows: {numbers: [{countr: 1}]}}]\n", "even_test.yaml")
    assert main(["validate", str(path)]) == 2
    assert "did you mean counter?" in capsys.readouterr().err
    path.write_text("tests: [{name: x, rows: {numbers: [{counter: 1}]}}]\n")
    assert main(["validate", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: valid (1 test)\n"
    shape = write(EVEN + "tests: [{name: x, rwos: {}}]\n")
    assert main(["validate", str(shape)]) == 2
    assert "did you mean rows?" in capsys.readouterr().err
    assert main(["plan", str(write(EVEN + "tests: [{name: x, rows: {}}]\n"))]) == 0


def test_a_file_of_tests_needs_its_pipeline(write, run_tests):
    path = write("tests: [{name: x, rows: {}}]\n", "alone_test.yaml")
    code, _, err = run_tests(path)
    assert code == 2
    assert "alone.yaml, whose tests these are by their name; give 'pipeline: FILE'" in err
    path.write_text("pipeline: elsewhere.yaml\ntests: [{name: x, rows: {}}]\n")
    code, _, err = run_tests(path)
    assert code == 2
    assert ":1:11: there is no file" in err


def test_without_any_test_nothing_passes(write, run_tests):
    code, _, err = run_tests(write(EVEN))
    assert code == 2
    assert "there are no tests in" in err
    code, _, err = run_tests(write(EVEN + "tests: [{name: x, rows: {}}]\n"), "-k", "other")
    assert code == 2
    assert "has 'other' in its name" in err
