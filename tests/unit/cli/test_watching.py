"""`arroyo run` as people and tools see it: on a terminal, through pipes, as JSON; without Spark."""

import contextlib
import errno
import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pyte
import pytest

from arroyo_core.api import Origin, Registry
from arroyo_core.cli.main import main
from arroyo_core.cli.progress import PlainProgress, Progress, ProgressKind, choose_progress
from arroyo_core.cli.run import open_progress
from arroyo_core.errors import PluginError
from arroyo_core.plugin import PluginSet, hookimpl
from arroyo_core.plugin.discovery import Hooks

ROOT = Path(__file__).resolve().parents[3]
PIPELINE = """\
name: watched
parallelism: 2
checkpoint: {url: STATE, interval: INTERVAL, rows: ROWS}
nodes:
  - {id: numbers, operator: impulse.source, config: {count: COUNT}}
  - {id: few, operator: std.filter, inputs: [numbers], config: {predicate: "counter % 10 = 0"}}
  - {id: out, operator: std.stdout, inputs: [few], config: {format: json}}
"""


@pytest.fixture
def pipeline(tmp_path):
    def write(*, count=60, rows=20, interval="1h", change=("", "")):
        text = PIPELINE.replace("STATE", str(tmp_path / "state")).replace("COUNT", str(count))
        path = tmp_path / "p.yaml"
        path.write_text(text.replace("ROWS", str(rows)).replace("INTERVAL", interval).replace(*change))
        return str(path)

    return write


class Terminal:
    """A command on a terminal of its own, and what that shows."""

    def __init__(self, command, *, columns=100, lines=24, stdout=None, environment=None):
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.leader, follower = pty.openpty()
        self.resize(columns, lines)
        self.process = subprocess.Popen(
            command,
            stdin=follower,
            stdout=follower if stdout is None else stdout,
            stderr=follower,
            env={**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8", **(environment or {})},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(follower)

    def resize(self, columns, lines):
        fcntl.ioctl(self.leader, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        gone = max(0, self.screen.lines - lines)
        self.screen.resize(lines, columns)
        # pyte takes lines away at the top, and leaves the cursor where it was: no longer at the end of what is shown.
        self.screen.cursor.y = max(0, self.screen.cursor.y - gone)

    def press_ctrl_c(self):
        os.write(self.leader, b"\x03")

    @property
    def shown(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def wait_for(self, pattern):
        """Until the screen shows it; fails with the screen if the command ends before."""
        while not re.search(pattern, self.shown):
            assert self._read(), f"no {pattern!r} on:\n{self.shown}"

    def end(self):
        """Read to the end; returns the exit code."""
        while self._read():
            pass
        return self.process.wait()

    def _read(self):
        """Whether there was more. Waits as long as the test may take: a busy machine is not a failure."""
        try:
            data = os.read(self.leader, 65536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            # What Linux says when nobody has the other side open any more.
            return False
        self.raw += data
        self.stream.feed(data)
        return bool(data)

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        os.close(self.leader)


@pytest.fixture
def terminal():
    opened = []

    def start(*arguments, **options):
        opened.append(Terminal([sys.executable, "-m", "arroyo_core", *arguments, "--in-process"], **options))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_a_terminal_shows_the_job_live_and_then_its_summary(terminal, pipeline):
    path = pipeline(count="1000000, rate: 1000", interval="700ms", rows=100_000, change=("% 10 =", "% 500 ="))
    shown = terminal("run", path, "--progress", "live")
    # All of it at once: what has come so far may end in the middle of the view.
    shown.wait_for(
        r"(?s)watched +running [\d.]+ s +epoch \d+ took.*rows out/s.*numbers +impulse.source +[\d,]+ .*slowest: \w+ \("
    )
    assert shown.shown.count("rows out/s") == 1
    # Rows of the pipeline stand above the view, in lines of their own.
    shown.wait_for(r"(?m)^\{\"counter\"")
    shown.resize(60, 16)
    shown.wait_for(r"(?m)^numbers +[\d,]+ +")
    shown.press_ctrl_c()
    shown.wait_for("stopping after this epoch; once more to stop at once|watched stopped")
    assert shown.end() == 0
    assert "watched stopped: " in shown.shown
    assert "slowest:" not in shown.shown
    assert not shown.screen.cursor.hidden
    assert b"\x1b[33m" in shown.raw
    assert b"\x1b[?" not in shown.raw


def test_an_error_leaves_the_terminal_in_order(terminal, pipeline):
    path = pipeline(change=("counter % 10 = 0", "10 / (counter - 50) < 100"))
    shown = terminal("run", path, "--progress", "live", environment={"NO_COLOR": "1"})
    assert shown.end() == 2
    # The view as it was, and the error below it in a line of its own.
    assert re.search(r"(?m)^numbers +impulse.source", shown.shown)
    assert re.search(r"(?ms)^arroyo: operator .few.*divide by zero", shown.shown)
    assert not re.search(rb"\x1b\[[0-9;]*m", shown.raw)


def test_rows_in_a_file_are_rows_only(terminal, pipeline, tmp_path):
    with (tmp_path / "rows").open("wb") as rows:
        shown = terminal("run", pipeline(), stdout=rows)
        assert shown.end() == 0
    lines = (tmp_path / "rows").read_text().splitlines()
    assert sorted(json.loads(line)["counter"] for line in lines) == [0, 10, 20, 30, 40, 50]
    # The view was there, and made room for the summary.
    assert b"rows out/s" in shown.raw
    assert "rows out/s" not in shown.shown
    assert "watched finished: " in shown.shown


def test_without_a_live_view_a_terminal_gets_lines(terminal, pipeline):
    blocked = {"ARROYO_BLOCK_PLUGINS": "arroyo-devtools", "NO_COLOR": "1"}
    shown = terminal("run", pipeline(), environment=blocked)
    assert shown.end() == 0
    assert len(re.findall(r"(?m)^\S+Z epoch +\d+ +[\d,]+ rows in ", shown.shown)) >= 3
    assert b"\x1b" not in shown.raw
    assert b"no live view" not in shown.raw
    asked = terminal("run", pipeline(), "--fresh", "--force", "--progress", "live", environment=blocked, columns=200)
    assert asked.end() == 0
    assert "no live view is installed: it is in arroyo-devtools (pip install arroyo-devtools)" in asked.shown
    assert re.search(r"(?m)^\S+Z epoch +\d+ ", asked.shown)


class Views:
    """A plugin with a live view."""

    def __init__(self, view):
        self.view = view

    @hookimpl
    def arroyo_progress(self, out):
        return self.view


def plugins_with(*views):
    hooks = Hooks()
    for number, view in enumerate(views):
        hooks.register(Views(view), Origin(f"acme-{number}", "1.0"))
    return PluginSet(Registry(), [], hooks=hooks)


def test_a_plugin_may_show_the_run_or_leave_it():
    own = PlainProgress()
    assert open_progress(ProgressKind.LIVE, None, plugins_with(None, own)) is own
    assert type(open_progress(ProgressKind.PLAIN, None, plugins_with(own))) is PlainProgress
    assert type(open_progress(ProgressKind.LIVE, None, plugins_with(None))) is PlainProgress
    assert type(open_progress(ProgressKind.NONE, None, plugins_with(own))) is Progress


def test_two_live_views_are_an_error_that_names_both():
    with pytest.raises(PluginError, match=r"the live view is claimed by acme-0 1.0 and by acme-1 1.0"):
        open_progress(ProgressKind.LIVE, None, plugins_with(Progress(), Progress()))
    with pytest.raises(PluginError, match=r"arroyo_progress of acme-0 1.0 returns str, expected Progress"):
        open_progress(ProgressKind.LIVE, None, plugins_with("view"))


def test_plain_progress_is_a_line_for_each_epoch(own_logging, pipeline, capfd):
    assert main(["run", pipeline(), "--in-process", "--progress", "plain"]) == 0
    shown = capfd.readouterr()
    assert len(re.findall(r"(?m)^20\d\d-\d\d-\d\dT[\d:.]+Z epoch +\d+ +[\d,]+ rows in ", shown.err)) >= 3
    assert "\x1b" not in shown.err
    assert "watched finished: " in shown.err
    assert len([json.loads(line) for line in shown.out.splitlines()]) == 6


def test_progress_none_shows_neither_epochs_nor_summary(own_logging, pipeline, capfd):
    assert main(["run", pipeline(), "--progress", "none", "--in-process"]) == 0
    shown = capfd.readouterr()
    assert shown.err == ""
    assert len(shown.out.splitlines()) == 6


def test_json_is_all_that_stdout_gets(own_logging, pipeline, capfd):
    assert main(["run", pipeline(), "--format", "json", "--in-process"]) == 0
    shown = capfd.readouterr()
    *epochs, end = [json.loads(line) for line in shown.out.splitlines()]
    assert [epoch["epoch"] for epoch in epochs] == list(range(1, len(epochs) + 1))
    assert sum(epoch["source_rows"] for epoch in epochs) == 60
    assert end["event"] == "end"
    assert (end["outcome"], end["error"], end["epochs"], end["source_rows"]) == ("finished", None, len(epochs), 60)
    # Rows that a sink prints are not lost.
    assert len(re.findall(r'(?m)^\{"counter"', shown.err)) == 6
    assert "epoch " not in shown.err


def test_the_fields_of_the_json_are_these(own_logging, pipeline, capfd):
    main(["run", pipeline(), "--format", "json", "--in-process"])
    epoch, *_, end = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert set(epoch) == {
        "event",
        "job",
        "epoch",
        "duration_s",
        "source_rows",
        "backlog",
        "watermark_us",
        "checkpoint_bytes",
        "state_bytes",
        "checkpoint_s",
        "commit_s",
        "is_final",
        "slowest",
        "operators",
    }
    assert set(end) == {
        "event",
        "job",
        "outcome",
        "error",
        "epochs",
        "resumed_from",
        "restarts",
        "generation",
        "parallelism",
        "committed_us",
        "duration_s",
        "source_rows",
        "operators",
    }
    totals = {
        "node",
        "operator",
        "parallelism",
        "rows_in",
        "rows_out",
        "bytes_in",
        "bytes_out",
        "busy_s",
        "counters",
        "backlog",
        "cache_bytes",
    }
    assert [item["node"] for item in epoch["operators"]] == ["numbers", "few", "out"]
    assert set(epoch["operators"][0]) == totals | {"busy_share", "state_bytes", "watermark_us", "warnings"}
    assert set(end["operators"][0]) == totals
    assert end["operators"][1]["rows_in"] == 60


def test_json_tells_of_a_failure(own_logging, pipeline, capfd):
    path = pipeline(change=("counter % 10 = 0", "10 / (counter - 50) < 100"))
    assert main(["run", path, "--format", "json", "--in-process"]) == 2
    shown = capfd.readouterr()
    *_, end = [json.loads(line) for line in shown.out.splitlines()]
    assert (end["event"], end["outcome"]) == ("end", "failed")
    assert "divide by zero" in end["error"]
    assert "operator 'few'" in shown.err


def test_a_job_that_goes_on_says_so(own_logging, pipeline, capfd):
    main(["run", pipeline(count=20), "--in-process"])
    capfd.readouterr()
    assert main(["run", pipeline(count=60), "--format", "json", "--in-process"]) == 0
    end = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert end["resumed_from"] > 0


class Stream(io.StringIO):
    def __init__(self, *, is_terminal=False, file=None):
        super().__init__()
        self._is_terminal = is_terminal
        self._file = file

    def isatty(self):
        return self._is_terminal

    def fileno(self):
        if self._file is None:
            raise io.UnsupportedOperation("fileno")
        return self._file


@pytest.mark.parametrize(
    ("is_terminal", "term", "is_json", "chosen"),
    [
        (True, "xterm", False, ProgressKind.LIVE),
        (True, "dumb", False, ProgressKind.PLAIN),
        (True, None, False, ProgressKind.PLAIN),
        (False, "xterm", False, ProgressKind.BRIEF),
        (True, "xterm", True, ProgressKind.NONE),
    ],
)
def test_what_is_shown_depends_on_who_looks(is_terminal, term, is_json, chosen):
    found = choose_progress(
        is_json=is_json,
        out=Stream(is_terminal=is_terminal),
        data=Stream(),
        environment={} if term is None else {"TERM": term},
    )
    assert found is chosen


def test_a_pipe_behind_a_terminal_gets_lines():
    """`arroyo run p.yaml | jq`: jq writes to the same terminal, and would write into a live view."""
    reading, writing = os.pipe()
    try:
        data = Stream(file=writing)
        kind = choose_progress(is_json=False, out=Stream(is_terminal=True), data=data, environment={"TERM": "xterm"})
        assert kind is ProgressKind.PLAIN
    finally:
        os.close(reading)
        os.close(writing)


def test_the_document_names_every_field(own_logging, pipeline, capfd):
    main(["run", pipeline(), "--format", "json", "--in-process"])
    text = (ROOT / "docs" / "watching.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", text))
    for line in map(json.loads, capfd.readouterr().out.splitlines()):
        assert set(line) | set(line["operators"][0]) <= named
