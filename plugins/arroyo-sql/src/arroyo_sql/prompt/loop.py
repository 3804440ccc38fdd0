"""Reads inputs, and prints what they come to: at a terminal with history and completion, else from a pipe."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from arroyo_core.api.visible import visible
from arroyo_core.cli.diagnostics import print_mistake, print_report
from arroyo_core.cli.exits import MISTAKE, OK, exit_code
from arroyo_core.cli.tables import print_rows
from arroyo_core.errors import ArroyoError, InvalidPipelineError
from arroyo_core.pipeline.mistakes import Mistakes, nearest
from arroyo_core.plugin import installed_plugins
from arroyo_sql.column_types import sql_type
from arroyo_sql.connectors import is_lookup, is_memory, table_type
from arroyo_sql.lexer import SourceText, tokenize
from arroyo_sql.prompt.collecting import Rows, cell
from arroyo_sql.prompt.session import Answer, Session

#: On a terminal; a pipe gets all.
MAX_SHOWN = 1_000
HELP = """\
\\d          the tables and views
\\d NAME     the columns of one
\\timing     show how long queries take, or do not
\\?          this help
\\q          leave; quit, exit and Ctrl-D do too
A statement ends with ';' and may have several lines. Ctrl-C stops a query."""


#: What people type who do not know the commands yet.
_PLAIN = {"quit": "\\q", "exit": "\\q", "help": "\\?"}


class LeaveError(Exception):
    """The user wants to leave."""


@dataclass(slots=True)
class Shell:
    """Runs inputs in a session and prints what they come to; `is_terminal` limits how much."""

    session: Session
    is_terminal: bool = False
    is_debug: bool = False
    is_timing: bool = False

    def run(self, text: str) -> int:
        """The exit code of an input: a command with a backslash, or statements. Raises `LeaveError`."""
        stripped = text.strip()
        if not stripped:
            return OK
        stripped = _PLAIN.get(stripped.rstrip(";").lower(), stripped)
        try:
            if stripped.startswith("\\"):
                self._command(stripped)
                return OK
            return self._statements(text)
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
            return OK
        except InvalidPipelineError as error:
            for mistake in error.errors:
                print_mistake(mistake, is_debug=self.is_debug)
            return MISTAKE
        except ArroyoError as error:
            print_report(f"arroyo: {error}", sys.stderr)
            return exit_code(error)
        except (OSError, ValueError, TypeError, LookupError, AttributeError, RuntimeError) as error:
            if self.is_debug:
                raise
            print_report(f"arroyo: {type(error).__name__}: {error} (more with --debug)", sys.stderr)
            return exit_code(error)

    def _statements(self, text: str) -> int:
        started = time.monotonic()
        for answer in self.session.execute(text):
            self._show(answer)
            if self.is_timing:
                print(f"Time: {(time.monotonic() - started) * 1000:.0f} ms")
            started = time.monotonic()
        return OK

    def _show(self, answer: Answer) -> None:
        if answer.rows is None:
            print(visible(answer.done))
            return
        self._show_rows(answer.rows, is_stopped=answer.is_stopped)

    def _show_rows(self, rows: Rows, *, is_stopped: bool) -> None:
        found = rows.final()
        shown = found[:MAX_SHOWN] if self.is_terminal else found
        schema = rows.schema
        numbers = [name for name in rows.columns if schema is not None and _is_number(str(schema.field(name).type))]
        print_rows(rows.columns, [[cell(value) for value in row] for row in shown], right=numbers)
        notes = [f"{len(found):,} row{'' if len(found) == 1 else 's'}"]
        if len(shown) < len(found):
            notes.append(f"the first {len(shown):,} are shown")
        if rows.dropped:
            notes.append(f"{rows.dropped:,} more were not kept")
        if is_stopped:
            notes.append("stopped before the end")
        print(f"({', '.join(notes)})")

    def _command(self, text: str) -> None:
        name, _, argument = text.partition(" ")
        argument = argument.strip().rstrip(";").strip()
        commands: dict[str, Callable[[str], None]] = {
            "\\q": self._leave,
            "\\?": lambda _: print(HELP),
            "\\timing": self._set_timing,
            "\\d": self._describe,
        }
        command = commands.get(name.rstrip(";"))
        if command is None:
            print_report(f"there is no command {name}: \\? shows those that there are", sys.stderr)
            return
        command(argument)

    def _leave(self, argument: str) -> None:
        raise LeaveError

    def _set_timing(self, argument: str) -> None:
        self.is_timing = not self.is_timing if argument not in ("on", "off") else argument == "on"
        print(f"Timing is {'on' if self.is_timing else 'off'}.")

    def _describe(self, name: str) -> None:
        session = self.session
        if not name:
            tables = [[table.name, self._kind(table.name)] for table in session.tables.values()]
            print_rows(["name", "kind"], [*tables, *([view, "view"] for view in session.views)])
            return
        name = name[1:-1].replace('""', '"') if name.startswith('"') and name.endswith('"') else name.lower()
        if name not in session.names:
            near = nearest(name, session.names)
            hint = f": did you mean {near}?" if near else ""
            print_report(f"there is no table or view {name!r}{hint}", sys.stderr)
            return
        schema = session.schema_of(name)
        rows = [[each.name, sql_type(each.type), "" if each.nullable else "NOT NULL"] for each in schema]
        print_rows(["column", "type", ""], rows)

    def _kind(self, name: str) -> str:
        table = self.session.tables[name]
        if is_memory(table):
            return "memory table"
        connector = str(table.options["connector"].value) if "connector" in table.options else ""
        kind = "lookup" if is_lookup(table) else table_type(table) or "table"
        return f"{kind} ({connector})"


def is_complete(text: str) -> bool:
    """Whether an input may be run: it is a command, or ends with ';' outside of quotes and comments."""
    if not text.strip() or text.lstrip().startswith("\\") or text.strip().lower() in _PLAIN:
        return True
    mistakes = Mistakes()
    tokens = tokenize(SourceText("", text), mistakes)
    return bool(tokens) and not mistakes and tokens[-1].is_sign(";")


def new_session() -> Session:
    return Session(installed_plugins(), os.environ)


def run_statements(text: str, *, is_debug: bool = False) -> int:
    """Run what is piped in; it ends at the first mistake. Lines that begin with a backslash are commands."""
    shell = Shell(new_session(), is_debug=is_debug)
    pending: list[str] = []
    for line in [*text.splitlines(keepends=True), "\n"]:
        is_command = line.lstrip().startswith("\\") and not "".join(pending).strip()
        if not is_command:
            pending.append(line)
            if not is_complete("".join(pending)):
                continue
        try:
            code = shell.run(line if is_command else "".join(pending))
        except LeaveError:
            return OK
        if code != OK:
            return code
        pending = []
    rest = "".join(pending)
    return shell.run(rest) if rest.strip() else OK


def run_prompt() -> int:
    """The prompt on this terminal, until \\q or Ctrl-D."""
    from arroyo_sql.prompt.terminal import open_terminal

    session = new_session()
    shell = Shell(session, is_terminal=True)
    terminal = open_terminal(session)
    print("arroyo sql: statements end with ';', \\? shows help")
    while True:
        try:
            text = terminal.prompt("sql> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return OK
        try:
            shell.run(text)
        except LeaveError:
            return OK


def _is_number(kind: str) -> bool:
    return kind.startswith(("int", "uint", "float", "double", "halffloat", "decimal"))
