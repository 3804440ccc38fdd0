"""Data of others does not command the terminal of whoever looks at it."""

import io
import sys

import pytest

from arroyo_core.cli.confined.start import _give
from arroyo_core.cli.diagnostics import print_report
from arroyo_core.cli.log_lines import LogLines
from arroyo_core.cli.main import main
from arroyo_core.cli.options import write_output
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


def test_headings_of_tables(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    for out in (io.StringIO(), Terminal()):
        print_rows([HOSTILE, "n"], [["value", "1"]], out, right=[HOSTILE])
        check(out.getvalue())
        assert "value" in out.getvalue()


@pytest.fixture
def folder(tmp_path):
    """A file whose columns a stranger has named, and a pipeline that reads it, which one has named, too."""
    (tmp_path / "rows.csv").write_text(f"{HOSTILE[:-1]},n\n1,2\n", encoding="utf-8")
    (tmp_path / f"{HOSTILE[:-1]}.yaml").write_text(
        "name: p\nnodes:\n"
        f"  - {{id: rows, operator: filesystem.source, config: {{path: {tmp_path}/rows.csv, format: csv}}}}\n"
        "  - {id: out, operator: std.blackhole, inputs: [rows]}\n"
    )
    return tmp_path


@pytest.mark.parametrize("arguments", [["validate"], ["plan"], ["lint"], ["validate", "--untrusted"]])
def test_names_of_columns_and_files(folder, capfd, arguments):
    (file,) = folder.glob("*.yaml")
    assert main([*arguments, str(file)]) == 0
    out, errors = capfd.readouterr()
    assert not set("\x1b\x9b\u202e\r") & set(out + errors)


def test_what_goes_to_a_terminal_instead_of_a_file(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    write_output(f"a picture of {HOSTILE}", None)
    check(terminal.getvalue())


def test_what_goes_to_a_file_is_as_it_is(monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr(sys, "stdout", file)
    write_output(f"a picture of {HOSTILE}", None)
    assert HOSTILE in file.getvalue()


def test_what_untrusted_mode_has_printed():
    class Screen(Terminal):
        buffer = io.BytesIO()

    terminal = Screen()
    _give(io.BytesIO(f"printed: {HOSTILE}".encode()), terminal)
    check(terminal.getvalue())
    assert Screen.buffer.getvalue() == b""
