from collections import Counter

import pyarrow as pa
import pytest
from arroyo_template_operator.config_pb2 import TotalsConfig
from arroyo_template_operator.plugin import TotalsConstructor
from arroyo_testing import OperatorHarness
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema, Registry, with_defaults
from arroyo_core.errors import ConfigError, OperatorError

STREAM = ArroyoSchema(pa.schema([("word", pa.string()), ("n", pa.int64())]))


def construct(**config):
    return TotalsConstructor().with_config(with_defaults(TotalsConfig(**config)), Registry())


def totals(**config):
    """One subtask of the operator; given as a function, so that a restart makes a fresh one."""
    return OperatorHarness(lambda: construct(**{"key": "word", "value": "n", **config}), inputs=[STREAM])


def rows(*pairs):
    return pa.record_batch([pa.array([word for word, _ in pairs], pa.string()), [n for _, n in pairs]], STREAM.schema)


def last(harness):
    """The last total of each key."""
    return {row["word"]: row["total"] for row in harness.output.to_pylist()}


def test_a_batch_gives_the_new_total_of_each_of_its_keys():
    with totals() as harness:
        harness.process(rows(("a", 1), ("b", 2), ("a", 3)))
        harness.process(rows(("a", 10)))
        assert sorted(row["total"] for row in harness.output.to_pylist()) == [2, 4, 14]
        assert last(harness) == {"a": 14, "b": 2}


def test_null_adds_nothing_and_is_a_key_like_any_other():
    with totals() as harness:
        harness.process(rows(("a", None), (None, 2), (None, 3)))
        assert last(harness) == {"a": 0, None: 5}


def test_totals_go_on_after_a_restart_from_the_checkpoint():
    with totals() as harness:
        harness.process(rows(("a", 1), (None, 2)))
        harness.checkpoint()
        harness.restore()
        harness.process(rows(("a", 1), (None, 2)))
        assert last(harness) == {"a": 2, None: 4}


@settings(deadline=None, max_examples=30)
@given(st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-9, 9)), min_size=1), max_size=5))
def test_totals_are_those_of_all_rows(batches):
    expected = Counter()
    with totals() as harness:
        for batch in batches:
            harness.process(rows(*batch))
            for word, n in batch:
                expected[word] += n
        if batches:
            assert last(harness) == dict(expected)


def test_a_total_that_is_too_large_fails_rather_than_being_wrong():
    with totals() as harness:
        harness.process(rows(("a", 2**63 - 1)))
        with pytest.raises(OperatorError, match="overflow"):
            harness.process(rows(("a", 1)))


@pytest.mark.parametrize(
    ("config", "field"),
    [({"key": "wrod"}, "key"), ({"value": "m"}, "value"), ({"value": "word"}, "value"), ({"column": "word"}, "column")],
)
def test_a_wrong_config_is_refused_with_the_field_that_is_wrong(config, field):
    with pytest.raises(ConfigError) as refused:
        construct(**{"key": "word", "value": "n", **config}).operator.output_schema([STREAM])
    assert refused.value.field == field
