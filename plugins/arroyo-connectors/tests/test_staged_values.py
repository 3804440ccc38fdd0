"""Values that their type does not have are refused before the epoch is published: no commit would take them."""

from __future__ import annotations

from decimal import Decimal

import datafusion
import pyarrow as pa
import pytest
from arroyo_connectors import Mode, TransactionalSink
from arroyo_connectors.staged_streams import Staged
from arroyo_connectors.staging import StagedEpoch, StagedWriter
from arroyo_testing import ParallelHarness

from arroyo_core.api import ArroyoSchema
from arroyo_core.errors import DataError, OperatorError

DAY = 86_400 * 10**6


class NoTarget(TransactionalSink):
    """What is refused reaches no target."""

    def name(self):
        return "t.none"

    def target(self, schema):
        raise AssertionError("a commit has begun")


def decimals(*digits):
    """Numbers of two decimals, of five digits at most."""
    data = b"".join(number.to_bytes(16, "little", signed=True) for number in digits)
    return pa.Array.from_buffers(pa.decimal128(5, 2), len(digits), [None, pa.py_buffer(data)])


def times(*micros):
    return pa.array(micros, pa.int64()).view(pa.time64("us"))


def texts(*values, kind=None):
    kind = kind or pa.string()
    binary = pa.array(values, pa.large_binary() if pa.types.is_large_string(kind) else pa.binary())
    return pa.Array.from_buffers(kind, len(binary), binary.buffers())


def column(values):
    return pa.RecordBatch.from_arrays([pa.array(range(len(values))), values], names=["n", "price"])


def staged(*batches):
    writer = StagedWriter(batches[0].schema, Staged(mode=Mode.APPEND))
    for batch in batches:
        writer.write(batch)
    return writer.close()


def read(stream):
    return [batch.rows for batch in StagedEpoch({0: stream}).batches()]


BAD = {
    "decimal": (decimals(100, 10**7), r"column 'price' .* decimal128\(5, 2\): 100000\.00 has more than 5 digits"),
    "negative": (decimals(-(10**7)), r"column 'price' .* decimal128\(5, 2\): -100000\.00 has more than 5 digits"),
    "time": (times(0, DAY), r"column 'price' .* time64\[us\]: .* 86400000000 "),
    "seconds": (pa.array([86_400], pa.int32()).view(pa.time32("s")), r"column 'price' .* time32\[s\]: .* 86400 "),
    "text": (texts(*[b"good"] * 1000, b"caf\xe9", b"good"), r"column 'price' .* string: the text b'caf\\xe9' is not"),
    "large text": (texts(b"\xff", kind=pa.large_string()), r"column 'price' .* large_string: the text b'\\xff' is"),
    "list": (
        pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), texts(b"a", b"b", b"\xfe")),
        r"column 'price' .* string: the text b'\\xfe' is not UTF-8",
    ),
    "struct": (
        pa.StructArray.from_arrays([decimals(1), times(DAY)], names=["amount", "at"]),
        r"column 'price\.at' .* time64\[us\]: .* 86400000000 ",
    ),
    "struct that is NULL": (
        pa.StructArray.from_arrays([times(DAY)], names=["at"], mask=pa.array([True])),
        r"column 'price\.at' .* 86400000000 ",
    ),
    "map": (
        pa.MapArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["a"]), decimals(10**6)),
        r"column 'price' .* decimal128\(5, 2\): 10000\.00 has more than 5 digits",
    ),
}


@pytest.mark.parametrize(("values", "message"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("settings", [{}, {"mode": Mode.UPSERT, "keys": ["n"]}], ids=["append", "upsert"])
def test_a_value_that_its_type_does_not_have_fails_the_epoch_before_it_is_published(values, message, settings):
    rows = column(values)
    with ParallelHarness(lambda: NoTarget(**settings), inputs=[ArroyoSchema(rows.schema)], parallelism=1) as harness:
        harness.process(rows)
        with pytest.raises(OperatorError, match=message) as refused:
            harness.checkpoint()
        assert isinstance(refused.value.__cause__, DataError)


def test_a_sum_of_decimals_that_datafusion_lets_overflow_is_refused():
    context = datafusion.SessionContext()
    numbers = pa.array([Decimal("6" * 38)], pa.decimal128(38, 0))
    context.register_record_batches("numbers", [[pa.RecordBatch.from_arrays([numbers], names=["d"])]])
    (rows,) = context.sql("select d + d as price from numbers").collect()
    with pytest.raises(DataError, match=f"column 'price' .* 1{'3' * 37}2 has more than 38 digits"):
        staged(rows)


def test_a_bad_value_among_many_batches_is_found():
    good = column(decimals(*range(1000)))
    with pytest.raises(DataError, match=r"12345678\.00 "):
        staged(*[good] * 100, column(decimals(1, 1234567800)), good)


@pytest.mark.parametrize(
    "values",
    [
        pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), times(0, DAY)),
        pa.StructArray.from_arrays([times(0, DAY)], names=["at"]),
        times(0, DAY),
    ],
    ids=["list", "struct", "flat"],
)
def test_values_of_rows_that_a_filter_left_out_do_not_count(values):
    rows = column(values).slice(0, 1)
    assert read(staged(rows)) == [column(values.slice(0, 1))]


def test_a_bad_value_below_a_null_is_no_value():
    hidden = pa.Array.from_buffers(pa.time64("us"), 1, [pa.py_buffer(b"\0"), times(DAY).buffers()[1]])
    (rows,) = read(staged(column(hidden)))
    assert rows.column("price").to_pylist() == [None]


def test_values_without_bytes_count_when_they_are_staged_as_in_a_commit(monkeypatch):
    monkeypatch.setenv("ARROYO_MAX_STAGED_BATCH_BYTES", "1MiB")
    count = 2 << 20
    lists = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), pa.nulls(count))
    with pytest.raises(DataError, match="too large to wait for its commit"):
        staged(column(lists))
