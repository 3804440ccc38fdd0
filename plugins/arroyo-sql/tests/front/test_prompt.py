"""The prompt: what a session keeps, what is typed, completed and remembered."""

import os
import signal
import stat
import threading

import pytest
from arroyo_sql.prompt.loop import LeaveError, Shell, is_complete
from arroyo_sql.prompt.session import Session
from arroyo_sql.prompt.terminal import SqlCompleter, open_terminal
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from arroyo_core.errors import InvalidPipelineError
from arroyo_core.plugin import installed_plugins

IMPULSE = "CREATE TABLE i WITH (connector = 'impulse', count = 6);"


@pytest.fixture
def session():
    return Session(installed_plugins(), {})


def rows(session, text):
    *_, answer = session.execute(text)
    return answer.rows.final()


def run(session, text):
    return [answer.done for answer in session.execute(text)]


class TestSession:
    def test_what_is_created_is_kept(self, session):
        assert run(session, IMPULSE + "CREATE VIEW v AS SELECT counter + 1 AS n FROM i") == [
            "CREATE TABLE",
            "CREATE VIEW",
        ]
        assert sorted(rows(session, "SELECT n FROM v WHERE n > 4")) == [(5,), (6,)]
        assert session.schema_of("v").names == ["n"]
        assert session.schema_of("i").names == ["counter", "subtask_index", "timestamp"]

    def test_a_query_without_a_table_is_computed(self, session):
        assert rows(session, "SELECT 1 + 1 AS two, upper('a') AS a") == [(2, "A")]
        with pytest.raises(InvalidPipelineError) as raised:
            run(session, "SELECT 1;\nSELECT nothing")
        assert str(raised.value.errors[0].at) == "input 2:2:1"

    def test_rows_are_ordered_and_limited(self, session):
        run(session, IMPULSE)
        assert rows(session, "SELECT counter AS n FROM i ORDER BY n DESC LIMIT 2 OFFSET 1") == [(4,), (3,)]
        assert rows(session, "SELECT counter FROM i ORDER BY 1 LIMIT 1") == [(0,)]
        assert len(rows(session, "SELECT counter FROM i LIMIT 4")) == 4
        assert rows(session, "SELECT counter FROM i LIMIT 0") == []
        assert rows(session, "SELECT counter FROM i WHERE counter > 9 ORDER BY counter") == []
        assert len(rows(session, "SELECT counter FROM i OFFSET 2")) == 4
        assert rows(session, "SELECT counter % 2 AS odd, max(counter) AS m FROM i GROUP BY 1 ORDER BY m LIMIT 1") == [
            (0, 4)
        ]

    def test_a_limit_ends_a_query_without_end(self, session, capsys):
        run(session, "CREATE TABLE endless WITH (connector = 'impulse', rate = 1000)")
        *_, answer = session.execute("SELECT counter FROM endless LIMIT 3")
        assert len(answer.rows.final()) == 3
        assert not answer.is_stopped
        assert not answer.rows.dropped

    @pytest.mark.parametrize("query", ["SELECT counter FROM i ORDER BY none", "SELECT counter FROM i ORDER BY i.none"])
    def test_an_order_that_the_result_has_not_is_a_mistake_at_its_place(self, session, query):
        run(session, IMPULSE)
        with pytest.raises(InvalidPipelineError, match="over the columns of the result, counter") as raised:
            run(session, query)
        assert str(raised.value.errors[0].at) == "input 2:1:23"

    def test_of_a_changing_result_the_final_rows_are_given(self, session):
        run(session, IMPULSE)
        found = rows(session, "SELECT counter % 2 AS odd, count(*) AS n, sum(counter) AS s FROM i GROUP BY 1")
        assert sorted(tuple(map(int, row)) for row in found) == [(0, 3, 6), (1, 3, 9)]

    def test_settings_and_parameters_last(self, session):
        run(session, IMPULSE + "SET parameters.least = 4")
        assert rows(session, "SELECT counter FROM i WHERE counter >= ${least}") == [(4,), (5,)]
        run(session, "SET parameters.least = 5")
        assert rows(session, "SELECT counter FROM i WHERE counter >= ${least}") == [(5,)]

    def test_a_table_may_be_created_again(self, session):
        run(session, IMPULSE)
        run(session, "CREATE TABLE i WITH (connector = 'impulse', count = 1)")
        assert rows(session, "SELECT counter FROM i") == [(0,)]

    def test_a_table_in_memory_gains_the_rows_of_each_statement(self, session):
        run(session, IMPULSE + "CREATE TABLE kept (n BIGINT)")
        assert session.schema_of("kept").names == ["n"]
        run(session, "INSERT INTO kept SELECT counter FROM i WHERE counter < 2")
        run(session, "INSERT INTO kept SELECT counter + 10 FROM i WHERE counter < 2")
        assert sorted(rows(session, "SELECT n FROM kept")) == [(0,), (1,), (10,), (11,)]

    @pytest.mark.parametrize(
        "text",
        [
            "INSERT INTO kept SELECT counter, counter AS again FROM i",
            "INSERT INTO kept (m) SELECT counter FROM i",
            "INSERT INTO kept SELECT n FROM kept",
        ],
    )
    def test_what_is_wrong_with_rows_for_memory_is_said_at_once_and_nothing_is_kept(self, session, text):
        run(session, IMPULSE + "CREATE TABLE kept (n BIGINT); INSERT INTO kept SELECT counter FROM i")
        with pytest.raises(InvalidPipelineError) as raised:
            run(session, text)
        assert raised.value.errors[0].at.file == "input 2"
        assert len(rows(session, "SELECT n FROM kept")) == 6

    def test_a_table_that_is_created_again_harms_only_what_reads_it(self, session):
        run(session, IMPULSE + "CREATE TABLE kept (n BIGINT); INSERT INTO kept SELECT counter FROM i")
        run(session, "CREATE VIEW v AS SELECT counter FROM i; CREATE VIEW w AS SELECT counter FROM v")
        run(session, "CREATE TABLE i WITH (connector = 'nexmark', table = 'bid', events = 50)")
        assert len(rows(session, "SELECT auction FROM i")) == 46
        for query in ("SELECT * FROM w", "SELECT * FROM kept"):
            with pytest.raises(InvalidPipelineError, match="counter"):
                run(session, query)

    @pytest.mark.parametrize(
        ("text", "place"),
        [
            ("SELECT *\nFROM nothing", "input 2:2:6"),
            ("CREATE TABLE t WITH (connector = 'impulse', cont = 1)", "input 2:1:45"),
            ("CREATE VIEW v AS SELECT none FROM i", "input 2:1:25"),
            ("SET nme = 'x'", "input 2:1:5"),
            ("CREATE FUNCTION f FROM './none.whl'", "input 2:1:24"),
        ],
    )
    def test_a_mistake_has_the_place_in_its_input_and_nothing_is_kept(self, session, text, place):
        run(session, IMPULSE)
        with pytest.raises(InvalidPipelineError) as raised:
            run(session, text)
        assert str(raised.value.errors[0].at) == place
        assert session.names == ["i"]
        assert len(rows(session, "SELECT * FROM i")) == 6

    def test_an_insert_is_run_and_leaves_no_checkpoints(self, session, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        text = "CREATE TABLE out WITH (connector = 'filesystem', type = 'sink', path = './out', format = 'json');"
        assert run(session, IMPULSE + text + "INSERT INTO out SELECT counter FROM i")[-1] == "INSERT"
        assert sum(len(file.read_text().splitlines()) for file in (tmp_path / "out").glob("*.jsonl")) == 6
        assert [path.name for path in tmp_path.iterdir()] == ["out"]

    def test_ctrl_c_stops_a_query_and_not_the_session(self, session, capsys):
        shell = Shell(session)
        shell.run("CREATE TABLE endless WITH (connector = 'impulse', rate = 100);" + IMPULSE)
        timer = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        assert shell.run("SELECT counter FROM endless;") == 0
        timer.join()
        assert "stopped before the end" in capsys.readouterr().out
        assert shell.run("SELECT count(*) AS n FROM i;") == 0
        assert "6" in capsys.readouterr().out


class TestShell:
    def test_tables_and_columns_are_shown(self, session, capsys):
        shell = Shell(session)
        shell.run(IMPULSE + "CREATE VIEW v AS SELECT counter FROM i;")
        capsys.readouterr()
        shell.run("\\d")
        assert capsys.readouterr().out.splitlines() == ["name  kind", "i     table (impulse)", "v     view"]
        shell.run("\\d V;")
        assert "counter  BIGINT UNSIGNED" in capsys.readouterr().out
        shell.run("\\d w")
        assert "there is no table or view 'w'" in capsys.readouterr().err
        shell.run("\\nothing")
        assert "there is no command" in capsys.readouterr().err

    def test_queries_are_timed_on_demand(self, session, capsys):
        shell = Shell(session)
        shell.run("\\timing")
        shell.run(IMPULSE)
        assert "Time: " in capsys.readouterr().out
        shell.run("\\timing off")
        shell.run(IMPULSE)
        assert "Time: " not in capsys.readouterr().out

    @pytest.mark.parametrize("text", ["quit", "exit;", "EXIT", "\\q"])
    def test_words_of_other_prompts_leave_it(self, session, text):
        with pytest.raises(LeaveError):
            Shell(session).run(text)

    def test_help_is_given_without_a_backslash(self, session, capsys):
        Shell(session).run("help")
        assert "\\d NAME" in capsys.readouterr().out

    def test_mistakes_show_the_line(self, session, capsys):
        assert Shell(session).run("SELECT *\nFROM nothing;") == 2
        assert "  2 | FROM nothing;\n    |      ^^^^^^^" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("SELECT 1;", True),
            ("SELECT 1; -- done", True),
            ("SELECT 1", False),
            ("SELECT ';", False),
            ("SELECT 1 /* ;", False),
            ("SELECT 1 -- ;", False),
            ("\\d", True),
            ("", True),
            ("Quit", True),
            ("quit now", False),
        ],
    )
    def test_an_input_ends_with_its_statement(self, text, expected):
        assert is_complete(text) is expected


class TestTerminal:
    def test_enter_waits_for_the_end_of_a_statement_and_history_is_private(self, session, tmp_path, monkeypatch):
        monkeypatch.setenv("ARROYO_SQL_HISTORY", str(tmp_path / "history"))
        with create_pipe_input() as keys:
            terminal = open_terminal(session, input=keys, output=DummyOutput())
            keys.send_text("SELECT 1\rAS a;\r")
            assert terminal.prompt("sql> ") == "SELECT 1\nAS a;"
            keys.send_text("\\d\r")
            assert terminal.prompt("sql> ") == "\\d"
            # The arrow up, once more to the statement before.
            keys.send_text("\x1b[A\x1b[A\r")
            assert terminal.prompt("sql> ") == "SELECT 1\nAS a;"
        file = tmp_path / "history" / "history"
        assert "SELECT 1" in file.read_text()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700

    def completed(self, session, text):
        found = SqlCompleter(session).get_completions(Document(text), CompleteEvent(completion_requested=True))
        return [completion.text for completion in found]

    def test_tables_columns_functions_keywords_and_commands_are_completed(self, session):
        run(session, "CREATE TABLE bids (price BIGINT, bidder BIGINT) WITH (connector = 'filesystem', path = 'x.csv')")
        assert self.completed(session, "SELECT * FROM b") == ["bids"]
        assert self.completed(session, "SELECT bids.p") == ["price"]
        assert self.completed(session, "SELECT * FROM bids AS b WHERE b.bi") == ["bidder"]
        assert "price" in self.completed(session, "SELECT * FROM bids WHERE pri")
        assert "BETWEEN" in self.completed(session, "SELECT BET")
        assert "between" in self.completed(session, "SELECT bet")
        assert "tumble" in self.completed(session, "SELECT tum")
        assert "upper" in self.completed(session, "SELECT upp")
        assert self.completed(session, "\\t") == ["\\timing"]
        assert self.completed(session, "\\d bi") == ["bids"]


def test_a_file_of_somebody_else_does_not_command_the_terminal(tmp_path, capsys):
    hostile = "\x1b]0;owned\x07\x9b31m\u202ename"
    (tmp_path / "rows.csv").write_text(f"{hostile},n\n{hostile},1\n", encoding="utf-8")
    shell = Shell(Session(installed_plugins(), {}))
    table = f"CREATE TABLE t WITH (connector = 'filesystem', path = '{tmp_path}/rows.csv', format = 'csv');"
    assert shell.run(f"{table} SELECT * FROM t;") == 0
    assert shell.run("\\d t") == 0
    assert shell.run("SELECT nothing FROM t;") != 0
    out, errors = capsys.readouterr()
    assert out.count("owned") == 3
    assert not set("\x1b\x07\x9b\u202e") & set(out + errors)
