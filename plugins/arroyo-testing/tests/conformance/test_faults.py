"""Each faulty operator is caught by the check for its rule, with a message that names the fault."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pyarrow as pa
import pytest
from arroyo_testing.conformance import (
    Conformance,
    ConformanceError,
    NotApplicable,
    OperatorCase,
    SinkCase,
    SourceCase,
    Stream,
    leftovers,
)

ROWS = pa.table({"word": ["a", "b", None, "c", "a", "d"], "n": [1, 2, 3, 4, 5, 6]})


@pytest.fixture(scope="module", autouse=True)
def _faulty_is_installed():
    """The plugin is the module `faulty` beside this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parent)
        yield


def run(case, check):
    """Run one check of one operator of the faulty plugin."""
    (found,) = [each for each in Conformance("faulty", [case]).checks() if each.name == check and each.case != "plugin"]
    found.run()


def fault(case, check):
    with pytest.raises(ConformanceError) as raised:
        run(case, check)
    return str(raised.value)


def published(folder):
    """The rows of all files of a folder."""
    files = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    rows = [row for path in files for row in ast.literal_eval(path.read_text())]
    return pa.Table.from_pylist(rows, schema=ROWS.schema)


def sink(name, rows=ROWS, **settings):
    return SinkCase(f"faulty.{name}", lambda folder: {"folder": str(folder)}, [rows], visible=published, **settings)


@pytest.mark.parametrize("check", ["any_cut_into_epochs", "no_state_outside_tables"])
def test_a_counter_in_an_attribute_is_named(check):
    message = fault(OperatorCase("faulty.count_in_attribute", {}, [ROWS]), check)
    assert "CountInAttribute keeps 'self._seen' (it was" in message
    assert "outside a state table" in message
    assert re.search(r"'nth' was expected to be \d, got \d", message)
    assert "Put it into a table: see docs/write-a-plugin.md" in message


@pytest.mark.parametrize("check", ["no_state_outside_tables", "crash_at_any_boundary"])
@pytest.mark.parametrize(
    ("operator", "named"),
    [("count_in_class", "'CountInClass.total'"), ("count_in_module", "'faulty.SEEN_BY_ALL'")],
)
def test_a_counter_that_outlives_the_operator_is_named(operator, named, check):
    message = fault(OperatorCase(f"faulty.{operator}", {}, [ROWS]), check)
    assert named in message
    assert "outlives the operator" in message


OPERATOR_FAULTS = [
    ("first_of_batch", "any_cut_into_batches", "another result with one row per batch: 5 rows are too many"),
    (
        "sends_again",
        "lives_on",
        "SendsAgain gives another result when it lives on after each checkpoint: .* too many.*It says lives_on",
    ),
    ("count_by_subtask", "any_parallelism", "another result at parallelism 3"),
    ("other_type", "produces_its_schema", "the column 'n' as int64, but output_schema() declares int32: cast it"),
    (
        "null_where_none",
        "produces_its_schema",
        "null in the column 'word', which output_schema() declares as not nullable",
    ),
    ("undeclared_side", "produces_its_schema", "to its side output 'rest' rows, and declares no such output"),
    ("fails_on_empty", "empty_batches", "fails with empty batches: IndexError"),
    ("fails_on_null", "nulls", "with null in every row of the column 'word' of input 0: TypeError"),
    (
        "leaves_thread",
        "leaves_nothing_behind",
        "LeavesThread leaves .* threads running, such as 'poller': end and join it",
    ),
    (
        "leaves_file",
        "leaves_nothing_behind",
        "LeavesFile leaves .* files behind, .*: delete temporary files in on_close",
    ),
    (
        "needs_more",
        "needed_columns",
        "without the columns n: .*needed_columns\\(\\) says that they are not needed for word",
    ),
    ("wrong_name", "describes_itself", "WrongName.name() is 'faulty.another_name', but it is registered as"),
    ("other_settings", "describes_itself", "a job could never start from its own checkpoint"),
]


@pytest.mark.parametrize(("operator", "check", "message"), OPERATOR_FAULTS)
def test_a_fault_of_an_operator_is_named(operator, check, message, monkeypatch):
    monkeypatch.setattr(leftovers, "_PATIENCE_S", 0.1)
    rows = ROWS
    if operator == "fails_on_null":
        rows = pa.table({"word": ["a", "b", "c"], "n": [1, 2, 3]})
    found = fault(OperatorCase(f"faulty.{operator}", {}, [rows]), check)
    assert message in found or re.search(message, found), found


def test_a_socket_that_others_replace_is_not_left_open():
    def have(*files):
        return leftovers.Belongings(frozenset(), dict(files), frozenset())

    def left(before, after):
        return leftovers._first_leftover(have(*before), have(*after), "on_close()")

    log, first, second = ("3", "/tmp/log"), ("4", "socket:[1]"), ("5", "socket:[2]")
    assert left([log, first], [log, ("4", "socket:[7]")]) is None
    assert left([log, first], [log, ("6", "socket:[7]")]) is None
    assert left([log, first], [log, first, second]) == "a file open, such as 'socket:[2]': close it in on_close()"
    assert left([log, first], [log, ("4", "pipe:[9]")]) == "a file open, such as 'pipe:[9]': close it in on_close()"
    assert left([log], [("3", "/tmp/other")]) == "a file open, such as '/tmp/other': close it in on_close()"


def test_a_result_that_depends_on_idle_inputs_and_epochs_is_named():
    at = pa.array(range(0, 9_000_000, 1_000_000), pa.timestamp("us", "UTC"))
    rows = Stream(pa.table({"n": list(range(9)), "at": at}), "at")
    message = fault(OperatorCase("faulty.emits_when_idle", {}, [rows]), "any_cut_in_a_pipeline")
    assert re.search(
        r"EmitsWhenIdle gives another result with epochs that end after the rounds .* \(seed \d\)", message
    )
    assert "too many" in message


def test_a_key_error_for_a_mistake_of_the_user_is_named():
    message = fault(OperatorCase("faulty.bad_config", {"key": "word"}, [ROWS]), "config_mistakes")
    assert "raises KeyError" in message
    assert "for a config without 'key'" in message
    assert "raise ConfigError(..., field='key')" in message


def test_a_config_error_without_a_field_is_named():
    message = fault(OperatorCase("faulty.nameless_config_error", {"key": "word"}, [ROWS]), "config_mistakes")
    assert "by a ConfigError without a field" in message
    assert "field='key'" in message


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        ("writes_into_its_config", "with_config() changes its config, which executors will not see"),
        ("resolves_in_place", "resolve() changes the config that it is given: make a copy"),
    ],
)
def test_a_constructor_that_changes_its_config_is_named(operator, message):
    assert message in fault(OperatorCase(f"faulty.{operator}", {"folder": "here"}, [ROWS]), "leaves_its_config")


def test_a_constructor_that_resolves_a_copy_passes():
    run(OperatorCase("faulty.resolves_a_copy", {"folder": "here"}, [ROWS]), "leaves_its_config")


SINK_FAULTS = [
    ("commits_twice", "commit_twice", "SinkThatCommitsTwice shows other rows .* when an epoch is committed twice"),
    ("never_starts_over", "lives_on", "when it lives on for 4 epochs at parallelism 1: .* too many.*start over"),
    ("shows_early", "nothing_visible_before_its_commit", "before the first checkpoint: .* too many"),
    ("forgets", "commit_after_a_crash", "when a fresh instance commits after a crash: .* missing"),
    (
        "overwrites",
        "refuses_an_older_token",
        "OverwritingSink shows other rows after a driver that lost the job has committed epoch 1 late, over those of "
        "its successor: .*Refuse a token that is older than the last one you took .*docs/write-a-sink.md",
    ),
    (
        "knows_epochs_by_number",
        "another_incarnation",
        "state was removed, and it counts epochs from 1 again: .* missing.* Know an epoch by ctx.token",
    ),
    ("promises", "refuses_an_older_token", "promises exactly once and takes no part in commits"),
    ("promises", "commit_twice", "promises exactly once and takes no part in commits: return True from is_committing"),
]


@pytest.mark.parametrize(("operator", "check", "message"), SINK_FAULTS)
def test_a_fault_of_a_sink_is_named(operator, check, message):
    assert re.search(message, fault(sink(operator), check))


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        # No word comes twice: only values that the kit moves make the two drivers differ.
        pa.table({"word": ["a", "b", "c", "d"], "n": [1, 2, 3, 4]}),
        pa.table({"word": ["a", "b"], "n": [1, 2]}),
    ],
)
def test_a_sink_in_which_the_last_writer_wins_is_named(rows):
    case = sink("last_writer_wins", rows, latest_by=["word"])
    # It is right as long as there is one driver.
    for name in ("every_row_once", "commit_twice", "commit_after_a_crash", "aborted_epochs_leave_nothing"):
        run(case, name)
    message = fault(case, "refuses_an_older_token")
    assert "LastValue shows other rows after a driver that lost the job has committed epoch 1 late" in message
    run(sink("fenced", rows, latest_by=["word"]), "refuses_an_older_token")


@pytest.mark.parametrize("name", ["sound_sink", "fenced"])
def test_a_sound_sink_passes(name):
    for check in Conformance("faulty", [sink(name, latest_by=["word"] if name == "fenced" else ())]).checks():
        # Its config is a Struct that it does not look at.
        if check.case != "plugin" and check.name != "config_mistakes":
            check.run()


SOURCE_FAULTS = [
    ("skips", "any_cut_into_epochs", "gives other rows in epochs of 1 rows: .* missing, .*Save the position"),
    ("remembers_its_start", "lives_on", "is not final after 500 epochs when it lives on in epochs of 1 rows"),
    ("over_budget", "keeps_its_budget", "emits 4 rows more after the epoch's budget of 1 was spent: ask ctx.control"),
    ("numbers", "any_parallelism", "at parallelism 2: 20 rows are too many, .* not by the subtask"),
    ("ignores_stops", "stops_when_told", "is told to stop, and returns CHECKPOINTED: return message.finish_type"),
]


@pytest.mark.parametrize(("operator", "check", "message"), SOURCE_FAULTS)
def test_a_fault_of_a_source_is_named(operator, check, message):
    found = fault(SourceCase(f"faulty.{operator}"), check)
    assert re.search(message, found, re.DOTALL), found


def test_a_source_that_waits_without_saying_so_is_named():
    message = fault(SourceCase("faulty.waits", idles=True), "says_when_idle")
    assert "waits for rows and does not say so" in message
    run(SourceCase("faulty.idles", idles=True), "says_when_idle")


def test_a_sound_operator_passes():
    for check in Conformance("faulty", [OperatorCase("faulty.passing", {}, [ROWS], is_ordered=True)]).checks():
        if check.case != "plugin":
            check.run()


def test_a_sink_that_promises_little_is_not_held_to_more():
    with pytest.raises(NotApplicable, match="promises at least once"):
        run(
            SinkCase("faulty.careful", lambda folder: {"folder": str(folder)}, [ROWS], visible=published),
            "commit_twice",
        )


def test_operators_without_a_case_are_named():
    (check,) = [
        each
        for each in Conformance("faulty", [OperatorCase("faulty.passing", {}, [ROWS])]).checks()
        if each.name == "every_operator_has_a_case"
    ]
    with pytest.raises(ConformanceError, match=r"faulty registers .*faulty\.count_in_attribute.* without a case"):
        check.run()


def test_a_library_that_comes_in_with_the_plugin_is_named(tmp_path, monkeypatch):
    plugin = tmp_path / "heavy_plugin.py"
    plugin.write_text("import duckdb\n\ndef arroyo_register(registry):\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    (check,) = [each for each in Conformance("heavy_plugin", []).checks() if each.name == "imports_nothing_heavy"]
    with pytest.raises(
        ConformanceError, match=r"heavy_plugin imports duckdb \(at .*heavy_plugin.py:1\).* when it is disc"
    ):
        check.run()


def test_a_case_that_shows_nothing_is_named():
    message = fault(OperatorCase("faulty.passing", {}, [ROWS.slice(0, 0)]), "produces_its_schema")
    assert "emits no row for the inputs of its case" in message


def test_a_check_that_does_not_exist_cannot_be_skipped():
    with pytest.raises(ValueError, match="skips no_such_check, which are no checks"):
        Conformance("faulty", [OperatorCase("faulty.passing", {}, [ROWS], skip={"no_such_check": ""})]).checks()


def test_two_cases_of_one_name_are_refused():
    cases = [OperatorCase("faulty.passing", {}, [ROWS])] * 2
    with pytest.raises(ValueError, match=r"several cases are called faulty\.passing"):
        Conformance("faulty", cases)
