"""Data of others does not command the terminal of whoever looks at it."""

import io

from arroyo_core.cli.diagnostics import print_report
from arroyo_core.cli.log_lines import LogLines
from arroyo_core.cli.tables import print_rows

HOSTILE = "\x1b[2J\x9b31m\u202egpj.exe\r"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def check(text):
    assert "2J" in text, "the rest is shown"
    assert not set(HOSTILE) & set(text) & set("\x9b\u202e\r")
    assert "\x1b[2J" not in text


def test_cells_of_tables(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    for out in (io.StringIO(), Terminal()):
        print_rows(["error"], [[f"{HOSTILE}\nnext"]], out)
        check(out.getvalue())
        assert "\\nnext" in out.getvalue()


def test_errors(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for out in (io.StringIO(), Terminal()):
        print_report(f"arroyo: bad line: {HOSTILE}\nadvice", out)
        check(out.getvalue())
        assert "\nadvice" in out.getvalue()


def test_lines_of_the_log():
    check(LogLines().render(f"dropped a bad line: {HOSTILE}", level="warning"))
