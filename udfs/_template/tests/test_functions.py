import pyarrow as pa
import pytest
from arroyo_testing.conformance import Conformance
from arroyo_udf_template import template_initials, template_share, template_span

#: The plugin imports nothing heavy, and registers under one name.
conformance = Conformance("arroyo_udf_template.plugin", [])


@pytest.mark.parametrize(("text", "expected"), [("ada lovelace", "AL"), ("  ", ""), ("é t", "ÉT")])
def test_initials_are_the_first_letters_in_capitals(text, expected):
    assert template_initials(text) == expected


def test_a_share_of_nothing_is_null():
    part, whole = pa.array([1.0, 2.0, None, 1.0]), pa.array([4.0, 0.0, 2.0, None])
    assert template_share.evaluate([part, whole]).to_pylist() == [0.25, None, None, None]


def test_a_span_does_not_depend_on_the_order_of_its_values():
    # The states of two groups of rows, then one state of both.
    states = template_span.partial([pa.array([3.0, 1.0, 7.0])], [0, 2, 3])
    assert template_span.finish(states).to_pylist() == [2.0, 0.0]
    for each in (states, states[::-1]):
        assert template_span.finish(template_span.merge(each, [0, 2])).to_pylist() == [6.0]
