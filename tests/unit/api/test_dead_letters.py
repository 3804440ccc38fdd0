"""The columns of dead letters, for authors of operators."""

from __future__ import annotations

import pyarrow as pa
import pytest
from arroyo_testing import OperatorHarness

from arroyo_core.api import ArrowOperator, ArroyoSchema, Origin
from arroyo_core.api.dead_letters import (
    PROVENANCE,
    dead_letter_schema,
    is_dead_letters,
    make_dead_letters,
    original_schema,
)
from arroyo_core.errors import ConfigError

STREAM = ArroyoSchema(pa.schema({"n": pa.int64(), "at": pa.timestamp("us", "UTC")}), "at", ("n",))


class Refuses(ArrowOperator):
    """Sends every row away, with its position where it knows one."""

    def name(self) -> str:
        return "acme.refuses"

    def output_schema(self, inputs):
        return inputs[0]

    def side_outputs(self, inputs):
        return {"errors": dead_letter_schema(inputs[0])}

    def process_batch(self, batch, ctx, collector):
        errors = [ValueError(f"{n} is no good") for n in batch.column("n").to_pylist()]
        positions = [f"queue/{n}" if n else None for n in batch.column("n").to_pylist()]
        letters = make_dead_letters(batch, errors, ctx, plugin=Origin("acme", "3"), positions=positions)
        collector.collect_side("errors", letters)


def test_an_operator_of_ones_own_makes_letters():
    with OperatorHarness(Refuses, inputs=[STREAM]) as harness:
        harness.process(
            pa.RecordBatch.from_arrays(
                [pa.array([7, 0]), pa.array([1, 2], pa.timestamp("us", "UTC"))], schema=STREAM.schema
            )
        )
        letters = harness.side_output("errors")
    assert letters.column("_error").to_pylist() == ["7 is no good", "0 is no good"]
    assert letters.column("_error_position").to_pylist() == ["queue/7", None]
    assert letters.column("_error_plugin").to_pylist() == ["acme 3"] * 2
    assert letters.column("_error_udf").null_count == 2
    assert letters.column("_error_incarnation").to_pylist() == ["00000000000000a1"] * 2
    assert is_dead_letters(letters.schema)
    assert original_schema(letters.schema) == STREAM.schema


def test_letters_have_neither_event_time_nor_keys():
    letters = dead_letter_schema(STREAM)
    assert (letters.timestamp_column, letters.key_columns) == (None, None)
    assert not is_dead_letters(STREAM.schema)


def test_letters_of_before_there_were_incarnations_are_letters():
    old = dead_letter_schema(STREAM).schema
    old = old.remove(old.get_field_index("_error_incarnation"))
    assert is_dead_letters(old)
    assert original_schema(old) == STREAM.schema
    assert not is_dead_letters(old.remove(old.get_field_index("_error_epoch")))


@pytest.mark.parametrize("name", PROVENANCE.names)
def test_a_column_of_a_taken_name_is_refused(name):
    with pytest.raises(ConfigError, match=f"has a column '{name}' already"):
        dead_letter_schema(ArroyoSchema(pa.schema({name: pa.string()})))


def test_an_operator_without_tables_is_row_wise():
    assert Refuses().is_row_wise([STREAM])
