from __future__ import annotations

from arroyo_core.api import Guarantee


def test_stdout_prints_at_least_once_and_says_why(make):
    sink = make("std.stdout")
    assert sink.guarantee() is Guarantee.AT_LEAST_ONCE
    assert sink.guarantee_reason().startswith("it prints an epoch again")


def test_a_blackhole_has_nothing_to_repeat(make):
    sink = make("std.blackhole")
    assert sink.guarantee() is Guarantee.EXACTLY_ONCE
    assert sink.guarantee_reason() == "it has no output that could come twice"
