from collections import Counter

import pyarrow as pa
import pytest
from arroyo_template.config_pb2 import RunningCountConfig
from arroyo_template.plugin import RunningCountConstructor, arroyo_register
from arroyo_testing import OperatorHarness
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema, Registry, with_defaults
from arroyo_core.errors import ConfigError

STREAM = ArroyoSchema(pa.schema([("word", pa.string()), ("n", pa.int64())]))


def construct(**config):
    return RunningCountConstructor().with_config(with_defaults(RunningCountConfig(**config)), Registry())


def running_count(**config):
    """One subtask of the operator; given as a function, so that a restart makes a fresh one."""
    return OperatorHarness(lambda: construct(**config), inputs=[STREAM])


def words(*values):
    return pa.record_batch({"word": pa.array(values, pa.string()), "n": pa.array(range(len(values)), pa.int64())})


def test_each_row_carries_the_count_of_its_key_so_far():
    with running_count(key="word") as harness:
        harness.process(words("a", "b", "a", None, "a", None))
        assert harness.output.column("count").to_pylist() == [1, 1, 2, 1, 3, 2]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=20), max_size=5))
def test_counts_do_not_depend_on_how_the_stream_is_cut_into_batches(batches):
    seen: Counter[str | None] = Counter()
    expected = []
    for word in (word for batch in batches for word in batch):
        seen[word] += 1
        expected.append(seen[word])
    with running_count(key="word") as harness:
        for batch in batches:
            harness.process(words(*batch))
        assert harness.output.column("count").to_pylist() == expected


def test_counts_go_on_after_a_restart_from_the_checkpoint():
    with running_count(key="word") as harness:
        harness.process(words("a", "a", None))
        harness.checkpoint()
        harness.restore()
        harness.process(words("a", "b", None))
        assert harness.output.column("count").to_pylist()[-3:] == [3, 1, 2]


def test_the_declared_schema_is_the_produced_one():
    with running_count(key="word", column="nth") as harness:
        harness.process(words("a"))
        assert harness.output.schema == construct(key="word", column="nth").operator.output_schema([STREAM]).schema


@pytest.mark.parametrize(("config", "field"), [({"key": "wrod"}, "key"), ({"key": "word", "column": "n"}, "column")])
def test_a_wrong_config_is_refused_with_the_field_that_is_wrong(config, field):
    with pytest.raises(ConfigError) as refused:
        construct(**config).operator.output_schema([STREAM])
    assert refused.value.field == field


def test_a_key_that_cannot_be_counted_is_refused():
    stream = ArroyoSchema(pa.schema([("word", pa.list_(pa.string()))]))
    with pytest.raises(ConfigError, match="list"):
        construct(key="word").operator.output_schema([stream])


def test_the_plugin_registers_its_operators():
    registry = Registry()
    arroyo_register(registry)
    assert list(registry.constructors) == ["template.running_count", "template.sqlite_upsert"]
