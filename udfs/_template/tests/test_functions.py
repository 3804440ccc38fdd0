import pyarrow as pa
import pytest
from arroyo_testing.conformance import Conformance
from arroyo_udf_template import template_initials, template_share, template_span

#: The plugin imports nothing heavy, and registers under one name.
conformance = Conformance("arroyo_udf_template.plugin", [])


@pytest.mark.parametrize(("text", "expected"), [("ada lovelace", "AL"), ("  ", ""), ("é t", "ÉT")])
def test_initials_are_the_first_letters_in_capitals(text, expected):
    assert template_initials(text) == expected


def test_null_has_no_initials_and_each_row_its_own():
    """As a pipeline calls it: with a column, cut in any way."""
    column = pa.array(["ada lovelace", None, "", "grace hopper"])
    expected = pa.array(["AL", None, "", "GH"])
    assert template_initials.evaluate([column]) == expected
    for cut in range(len(column)):
        parts = [template_initials.evaluate([part]) for part in (column[:cut], column[cut:])]
        assert pa.concat_arrays(parts) == expected


def test_a_share_has_the_type_that_is_declared_also_without_rows():
    nothing = pa.array([], pa.float64())
    assert template_share.evaluate([nothing, nothing]).type == pa.float64()


def test_a_share_of_nothing_is_null():
    part, whole = pa.array([1.0, 2.0, None, 1.0]), pa.array([4.0, 0.0, 2.0, None])
    assert template_share.evaluate([part, whole]).to_pylist() == [0.25, None, None, None]


def test_a_span_of_no_values_is_null():
    # Of two groups the first has no rows; rows whose value is null never come here.
    states = template_span.partial([pa.array([4.0])], [0, 0, 1])
    assert template_span.finish(states).to_pylist() == [None, 0.0]


def test_a_span_does_not_depend_on_the_order_of_its_values():
    # The states of two groups of rows, then one state of both.
    states = template_span.partial([pa.array([3.0, 1.0, 7.0])], [0, 2, 3])
    assert template_span.finish(states).to_pylist() == [2.0, 0.0]
    for each in (states, states[::-1]):
        assert template_span.finish(template_span.merge(each, [0, 2])).to_pylist() == [6.0]
