"""The bottom of a terminal, as a terminal emulator shows it."""

import io
import os

import pyte
import pytest
from arroyo_devtools.live.screen import AboveScreen, Screen
from rich.console import Console, Group
from rich.text import Text


class Terminal(io.StringIO):
    """A stream into an emulated terminal."""

    encoding = "utf-8"

    def __init__(self, columns=20, lines=6):
        super().__init__()
        self.screen = pyte.Screen(columns, lines)
        # As a real one does: the cursor goes to the first column, too.
        self.screen.set_mode(pyte.modes.LNM)
        self.stream = pyte.Stream(self.screen)

    def write(self, text):
        self.stream.feed(text)
        return len(text)

    def size(self):
        return os.terminal_size((self.screen.columns, self.screen.lines))

    def shown(self):
        return [line.rstrip() for line in self.screen.display if line.strip()]


@pytest.fixture
def terminal():
    return Terminal()


@pytest.fixture
def screen(terminal):
    return Screen(Console(file=terminal, force_terminal=True, color_system="standard"), terminal.size)


def frame(*lines):
    return Group(*(Text(line) for line in lines))


def test_lines_are_redrawn_in_place(terminal, screen):
    screen.draw(frame("one", "two", "three"))
    screen.draw(frame("1", "2"))
    assert terminal.shown() == ["1", "2"]


def test_other_text_goes_above(terminal, screen):
    screen.draw(frame("view"))
    screen.write_above("row 1\nrow 2\n")
    screen.draw(frame("later view"))
    screen.write_above("row 3\n")
    assert terminal.shown() == ["row 1", "row 2", "row 3", "later view"]


def test_other_text_stays_as_it_is(terminal, screen):
    written = []
    terminal.write = written.append
    screen.draw(frame("view"))
    row = "[bold]\ta :smile: \x1b[1m" + "wide " * 20 + "\n"
    screen.write_above(row)
    assert row in written[-1]


def test_rows_scroll_away_above_the_view(terminal, screen):
    screen.draw(frame("view", "of two lines"))
    for number in range(30):
        screen.write_above(f"row {number}\n")
    assert terminal.shown() == ["row 27", "row 28", "row 29", "view", "of two lines"]


def test_colours_do_not_count_as_width(terminal, screen):
    wide = Text("x" * 19, style="bold yellow")
    screen.draw(Group(wide, wide))
    assert terminal.shown() == ["x" * 19] * 2
    screen.draw(frame("done"))
    assert terminal.shown() == ["done"]


def test_a_narrower_terminal_keeps_one_view(terminal, screen):
    screen.draw(frame("x" * 19, "y" * 19))
    # As terminals do that wrap what became too wide.
    terminal.screen.reset()
    terminal.screen.resize(6, 10)
    terminal.screen.set_mode(pyte.modes.LNM)
    terminal.write(f"{'x' * 19}\n{'y' * 19}\n")
    screen.draw(frame("x" * 9, "y" * 9))
    assert terminal.shown() == ["x" * 9, "y" * 9]


def test_a_terminal_that_moved_the_cursor_keeps_no_part_of_the_view(terminal, screen):
    screen.draw(frame("one", "two", "three"))
    # As terminals do that became lower: the cursor is above the end of what was drawn.
    terminal.write("\x1b[1A")
    screen.close(is_kept=False)
    assert terminal.shown() == []


def test_what_was_written_by_others_stays_after_forgetting(terminal, screen):
    screen.draw(frame("view"))
    terminal.write("$ fg\n")
    screen.forget()
    screen.draw(frame("view again"))
    assert terminal.shown() == ["view", "$ fg", "view again"]


@pytest.mark.parametrize(("is_kept", "shown"), [(True, ["view", "after"]), (False, ["after"])])
def test_the_view_stays_or_goes_at_the_end(terminal, screen, is_kept, shown):
    screen.draw(frame("view"))
    screen.close(is_kept=is_kept)
    terminal.write("after\n")
    assert terminal.shown() == shown


def test_a_stream_writes_whole_lines_only(terminal, screen):
    above = AboveScreen(screen, terminal)
    screen.draw(frame("view"))
    print("begun ", end="", file=above, flush=True)
    assert terminal.shown() == ["view"]
    print("and ended", file=above)
    above.writelines(["next", " one"])
    assert terminal.shown() == ["begun and ended", "view"]
    above.close()
    assert terminal.shown() == ["begun and ended", "next one", "view"]
    assert above.encoding == "utf-8"


def test_a_terminal_that_is_gone_is_no_error():
    class Gone(io.StringIO):
        def write(self, text):
            raise OSError(5, "Input/output error")

    screen = Screen(Console(file=Gone(), force_terminal=True), lambda: os.terminal_size((80, 24)))
    screen.draw(frame("view"))
    screen.draw(frame("view"))
    screen.close(is_kept=False)
