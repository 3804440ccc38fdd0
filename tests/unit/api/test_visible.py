import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api.visible import visible


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        ("\x9b2J", "\\u009b2J"),
        ("a\rb\x7f", "a\\x0db\\u007f"),
        ("ab\u202ecd", "ab\\u202ecd"),
        ("\u2066\u200f\u2028", "\\u2066\\u200f\\u2028"),
        ("line\n\tline, café, 日本, 👩\u200d🚀", "line\n\tline, café, 日本, 👩\u200d🚀"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out_and_nothing_else(text, expected):
    assert visible(text) == expected


def test_one_line_stays_one_line():
    assert visible("a\nb\tc", is_one_line=True) == "a\\nb\\tc"


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text):
    assert not any(letter < " " or "\x7f" <= letter <= "\x9f" for letter in visible(text, is_one_line=True))


@given(st.dictionaries(st.text(), st.text()))
def test_json_stays_the_same_json(value):
    assert json.loads(visible(json.dumps(value, ensure_ascii=False))) == value
