"""Tables and errors, in a pipe and on a terminal."""

import io
import re

import pytest

from arroyo_core.cli.diagnostics import print_report
from arroyo_core.cli.tables import align, print_rows

COLUMNS, ROWS = ("name", "size", "note"), [("a", 5, "[bold]x :smile:"), ("longer", 12345, "")]
PLAIN = """\
name     size  note
a           5  [bold]x :smile:
longer  12345
"""
REPORT = "p.yaml:4:25: there is no operator\n  4 | - std.fliter\n    |   ^^^^^^^^^^\n      did you mean std.filter?"
CODES = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


def table(out, rows=ROWS):
    print_rows(COLUMNS, rows, out, right=["size"])
    return out.getvalue()


def stripped(text):
    return "".join(f"{line.rstrip()}\n" for line in CODES.sub("", text).splitlines())


def test_a_table_in_a_pipe_is_plain_text():
    assert table(io.StringIO()) == PLAIN


def test_a_terminal_shows_the_same_with_a_bold_heading(terminal):
    shown = table(terminal)
    assert stripped(shown) == PLAIN
    assert "\x1b[1mname" in shown


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_nothing_but_text_where_it_is_not_wanted(terminal, monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    table(terminal)
    print_report(REPORT, terminal)
    assert "\x1b" not in terminal.getvalue()


def test_a_narrow_terminal_folds_cells_and_loses_nothing(terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    shown = stripped(table(terminal, [("a", 5, "0123456789" * 6)]))
    assert max(map(len, shown.splitlines())) <= 30
    assert "".join(re.findall(r"\d{2,}", shown)) == "0123456789" * 6


def test_a_long_table_is_as_plain_as_in_a_pipe(terminal):
    assert "\x1b" not in table(terminal, [ROWS[0]] * 1_001)


def test_rows_may_have_less_cells_than_others():
    assert align([["a", "bb", "c"], [], ["aaa", "b"]]) == ["a    bb  c", "", "aaa  b"]
    assert align([]) == []


def test_an_error_is_the_same_text_with_colours(terminal):
    print_report(REPORT, terminal)
    assert CODES.sub("", terminal.getvalue()) == f"{REPORT}\n"
    assert "\x1b[1mp.yaml:4:25:\x1b[0m \x1b[1;31mthere is no operator\x1b[0m" in terminal.getvalue()
    assert "\x1b[31m    |   ^^^^^^^^^^\x1b[0m" in terminal.getvalue()


def test_an_error_in_a_pipe_is_plain_text():
    out = io.StringIO()
    print_report(REPORT, out)
    assert out.getvalue() == f"{REPORT}\n"
