"""What the steps of a test do to a pipeline."""

import pytest
from arroyo_testing.live import ThreadLauncher


def test_rows_of_a_source_come_out_of_nodes(even):
    code, out, _ = even("""
        - name: even numbers stay
          rows: {numbers: [{counter: 1}, {counter: 2}, {counter: 4}]}
          expect:
            even: [{counter: 4}, {counter: 2}]
            out: {in_order: [{counter: 2}, {counter: 4}]}
            numbers: {count: 3}
        """)
    assert code == 0, out
    assert "ok    even numbers stay" in out
    assert out.endswith("1 test, all passed\n")


def test_rows_that_differ_are_shown_in_a_table_with_the_place_of_the_expectation(even, tmp_path):
    code, out, _ = even("""
        - name: wrong
          rows: {numbers: [{counter: 2, subtask_index: 1}, {counter: 4, subtask_index: 1}]}
          expect:
            even:
              - {counter: 2, subtask_index: 3}
              - {counter: 6, subtask_index: 0}
        """)
    assert code == 1
    assert f"{tmp_path / 'p.yaml'}:12:9: even: 1 row missing, 1 row not expected, 1 row with other values" in out
    table = [line.strip() for line in out.splitlines() if line.strip()]
    assert table[3:9] == [
        "counter  subtask_index",
        "- 2        3",
        "+ 2        1",
        "^",
        "- 6        0",
        "+ 4        1",
    ]
    assert out.endswith("1 test, 1 failed\n")


@pytest.mark.parametrize(
    ("expect", "code"),
    [
        ("{in_order: [{counter: 2}, {counter: 4}]}", 0),
        ("{in_order: [{counter: 4}, {counter: 2}]}", 1),
        ("[{counter: 4}, {counter: 2}]", 0),
        ("{any_order: [{counter: 4}, {counter: 2}]}", 0),
        ("[{counter: 4}, {counter: 4}]", 1),
        ("[{counter: 2}]", 1),
        ("[]", 1),
        ("{count: 2}", 0),
        ("{count: 1}", 1),
    ],
)
def test_an_expectation_is_about_the_rows_their_number_or_their_order(even, expect, code):
    assert (
        even(f"""
        - name: numbers
          rows: {{numbers: [{{counter: 2}}, {{counter: 4}}]}}
          expect: {{even: {expect}}}
        """)[0]
        == code
    )


LATE = """
- name: late
  parallelism: {parallelism}
  steps:
    - rows: {{orders: [{{id: 1, shop: a, amount: 1.50, at: 2026-03-01T09:00:01Z}}]}}
    - rows: {{orders: [{{id: 2, shop: a, amount: 2.00, at: 2026-03-01T09:00:12Z}}]}}
    - {between}
    - rows: {{orders: [{{id: 3, shop: a, amount: 4.00, at: 2026-03-01T09:00:02Z}}]}}
    - expect:
        sums: [{{shop: a, total: 1.50}}]
        sums.late: [{{id: 3}}]
  expect:
    out: [{{shop: a, total: 1.50}}, {{shop: a, total: 2.00}}]
    late: [{{id: 3}}]
"""


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize(
    "between", ["checkpoint", "crash", "crash: before_commit", "restart", "rescale: 3", "advance_time: 1m"]
)
def test_what_happens_between_rows_changes_nothing(windows, between, parallelism):
    code, out, err = windows(LATE.format(between=between, parallelism=parallelism))
    assert code == 0, out + err


@pytest.mark.parametrize("between", ["crash", "crash: before_commit", "restart", "rescale: 3"])
def test_steps_are_the_same_in_live_workers(windows, monkeypatch, between):
    crews = []
    monkeypatch.setattr(ThreadLauncher, "start", noting(crews, ThreadLauncher.start))
    text = LATE.format(between=between, parallelism=2)
    code, out, err = windows(text, "--live")
    assert code == 0, out + err
    # One for each life of the job.
    assert len(crews) > 1
    code, out, _ = windows(text.replace("total: 2.00", "total: 2.50"), "--live")
    assert (code, "1 failed" in out) == (1, True)


def noting(calls, method):
    """The same, noted each time."""

    def noted(*arguments):
        calls.append(arguments)
        return method(*arguments)

    return noted


def test_tests_do_not_run_on_spark_and_in_threads_at_once(even):
    with pytest.raises(SystemExit):
        even("- {name: none, rows: {}, expect: {}}", "--live", "--spark")


def test_a_step_expects_what_came_since_the_last_one(even):
    code, out, _ = even("""
        - name: since
          steps:
            - rows: {numbers: [{counter: 2}]}
            - expect: {even: [{counter: 2}]}
            - expect: {even: []}
            - rows: {numbers: [{counter: 4}]}
            - rows: {numbers: [{counter: 6}]}
            - expect: {even: [{counter: 4}, {counter: 6}]}
          expect: {even: {count: 3}}
        """)
    assert code == 0, out


def test_a_source_that_is_idle_or_has_ended_holds_nobody_up(two):
    code, out, err = two("""
        - name: idle
          steps:
            - rows: {left: [{counter: 1, timestamp: 2026-03-01T09:00:01Z}]}
            - watermark: {left: 2026-03-01T09:00:20Z}
            - expect: {counts: []}
            - idle: right
            - expect: {counts: [{n: 1}]}
        - name: ended
          steps:
            - rows: {left: [{counter: 1, timestamp: 2026-03-01T09:00:01Z}]}
            - watermark: {left: 2026-03-01T09:00:20Z}
            - end: [right]
            - expect: {counts: [{n: 1}]}
        """)
    assert code == 0, out + err


def test_time_stands_still_unless_it_is_moved(windows):
    code, out, err = windows("""
        - name: idle time
          steps:
            - rows: {orders: [{id: 1, shop: a, amount: 1.50, at: 2026-03-01T09:00:01Z}]}
            - advance_time: 1h
            - expect: {sums: []}
        """)
    assert code == 0, out + err


@pytest.mark.parametrize(("duration", "count"), [("4s", 0), ("6s", 1)])
def test_a_stream_is_idle_when_time_has_moved_far_enough(two, duration, count):
    code, out, err = two(f"""
        - name: idle
          steps:
            - rows:
                left: [{{counter: 1, timestamp: 2026-03-01T09:00:01Z}}]
                right: [{{counter: 1, timestamp: 2026-03-01T09:00:01Z}}]
            - advance_time: {duration}
            - watermark: {{left: 2026-03-01T09:00:20Z}}
            - expect: {{counts: {{count: {count}}}}}
        """)
    assert code == 0, out + err


def test_an_expected_failure_is_a_success_and_its_absence_a_failure(even, write, run_tests):
    code, out, _ = even("""
        - name: fails not
          rows: {numbers: [{counter: 2}]}
          error: no such thing
        """)
    assert code == 1
    assert "was expected to fail with 'no such thing', and did not" in out
    path = write(
        """
        name: division
        nodes:
          - {id: numbers, operator: impulse.source, config: {count: 20}}
          - {id: part, operator: std.project, inputs: [numbers], config: {expressions: {x: 10 / counter}}}
          - {id: out, operator: std.blackhole, inputs: [part]}
        tests:
          - {name: by nothing, rows: {numbers: [{counter: 0}]}, error: ivide by zero}
          - {name: by something, rows: {numbers: [{counter: 5}]}, expect: {part: [{x: 2}]}}
          - {name: by nothing unexpected, rows: {numbers: [{counter: 0}]}, expect: {part: []}}
        """
    )
    code, out, _ = run_tests(path)
    assert code == 1
    assert "ok    by nothing  " in out
    assert "ok    by something" in out
    assert "FAIL  by nothing unexpected" in out
    assert "the pipeline failed: OperatorError: operator 'part'" in out


def test_a_pipeline_that_must_not_be_valid(write, run_tests):
    path = write(
        """
        name: wrong
        nodes:
          - {id: numbers, operator: impulse.source, config: {count: 20}}
          - {id: part, operator: std.project, inputs: [numbers], config: {expressions: {x: "${COLUMN}"}}}
          - {id: out, operator: std.blackhole, inputs: [part]}
        tests:
          - {name: no such column, environment: {COLUMN: countre}, error: "no column"}
          - {name: right, environment: {COLUMN: counter}, rows: {numbers: [{counter: 5}]}, expect: {part: [{x: 5}]}}
        """
    )
    code, out, err = run_tests(path)
    assert code == 0, out + err
    assert "ok    no such column" in out


def test_a_real_source_makes_its_own_rows(even):
    code, out, _ = even("""
        - {name: real, sources: {numbers: real}, expect: {even: {count: 10}}}
        """)
    assert code == 0, out


def test_sinks_write_nothing(write, run_tests, tmp_path):
    path = write(f"""
        name: written
        nodes:
          - {{id: numbers, operator: impulse.source, config: {{count: 20}}}}
          - {{id: out, operator: filesystem.sink, inputs: [numbers], config: {{path: {tmp_path}/out, format: json}}}}
        tests:
          - {{name: nothing, rows: {{numbers: [{{counter: 5}}]}}, expect: {{out: [{{counter: 5}}]}}}}
        """)
    assert run_tests(path)[0] == 0
    assert not (tmp_path / "out").exists()


def test_of_a_struct_only_the_named_fields_are_compared(write, run_tests):
    path = write("""
        name: changes
        nodes:
          - {id: numbers, operator: impulse.source, config: {count: 20}}
          - id: counts
            operator: std.updating_aggregate
            inputs: [numbers]
            config: {keys: [subtask_index], aggregates: [{function: count, as: n}]}
          - {id: out, operator: std.blackhole, inputs: [counts]}
        tests:
          - name: a count is taken back before it is given again
            steps:
              - rows: {numbers: [{subtask_index: 1}, {subtask_index: 1}]}
              - rows: {numbers: [{subtask_index: 1}]}
            expect:
              counts:
                in_order:
                  - {n: 2, _updating_meta: {is_retract: false}}
                  - {n: 2, _updating_meta: {is_retract: true}}
                  - {n: 3, _updating_meta: {is_retract: false}}
        """)
    code, out, err = run_tests(path)
    assert code == 0, out + err
