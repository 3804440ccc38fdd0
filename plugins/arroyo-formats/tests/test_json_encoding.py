from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
import pytest
from arroyo_formats.json import encoding
from arroyo_formats.json.encoding import encode_lines
from hypothesis import given
from hypothesis import strategies as st

STRINGS = st.text(st.characters(codec="utf-8"), max_size=8)
LEAVES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float64(), st.floats(allow_nan=True)),
    (pa.string(), STRINGS),
    (pa.large_string(), STRINGS),
    (pa.bool_(), st.booleans()),
]


def _typed(depth: int) -> st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    leaves = st.sampled_from(LEAVES)
    if depth == 0:
        return leaves
    inner = _typed(depth - 1)
    lists = inner.map(lambda pair: (pa.list_(pair[0]), st.lists(st.none() | pair[1], max_size=3)))
    structs = st.lists(inner, min_size=1, max_size=3).map(
        lambda pairs: (
            pa.struct([(f"f{i}", kind) for i, (kind, _) in enumerate(pairs)]),
            st.fixed_dictionaries({f"f{i}": st.none() | values for i, (_, values) in enumerate(pairs)}),
        )
    )
    maps = inner.map(
        lambda pair: (
            pa.map_(pa.string(), pair[0]),
            st.dictionaries(STRINGS, st.none() | pair[1], max_size=3).map(lambda found: list(found.items())),
        )
    )
    return leaves | lists | structs | maps


def _expected(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if pa.types.is_list(kind):
        return [_expected(item, kind.value_type) for item in value]
    if pa.types.is_struct(kind):
        return {field.name: _expected(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return {key: _expected(item, kind.item_type) for key, item in value}
    return value


@given(st.data())
def test_every_line_reads_back_as_its_row(data: st.DataObject) -> None:
    rows = data.draw(st.integers(1, 6))
    pairs = data.draw(st.lists(_typed(2), min_size=1, max_size=3))
    columns = {
        f'c {i}"': pa.array(data.draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), kind)
        for i, (kind, values) in enumerate(pairs)
    }
    start = data.draw(st.integers(0, rows))
    batch = pa.RecordBatch.from_pydict(columns).slice(start)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "PART_ROWS", 2)
        text = b"".join(part.to_pybytes() for part in encode_lines(batch)).decode()
    read = [json.loads(line) for line in text.split("\n")[:-1]]
    wanted = [
        {field.name: _expected(row[field.name], field.type) for field in batch.schema} for row in batch.to_pylist()
    ]
    assert text == "" or text.endswith("\n")
    assert read == wanted


def test_times_are_iso_in_utc_and_decimals_keep_their_digits() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "zoned": pa.array([1_000_001], pa.timestamp("us", tz="Europe/Amsterdam")),
            "naive": pa.array([1], pa.timestamp("s")),
            "fine": pa.array([1], pa.timestamp("ns", tz="UTC")),
            "date": pa.array([1], pa.date32()),
            "exact": pa.array(["1.10"]).cast(pa.decimal128(9, 2)),
            "word": pa.array(["x"]).dictionary_encode(),
        }
    )
    (line,) = [part.to_pybytes() for part in encode_lines(batch)]
    assert json.loads(line) == {
        "zoned": "1970-01-01T00:00:01.000001Z",
        "naive": "1970-01-01T00:00:01Z",
        "fine": "1970-01-01T00:00:00.000000001Z",
        "date": "1970-01-02",
        "exact": "1.10",
        "word": "x",
    }


@pytest.mark.parametrize("kind", [pa.binary(), pa.map_(pa.int64(), pa.int64()), pa.list_(pa.binary())])
def test_a_type_without_json_is_refused(kind: pa.DataType) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([None], kind)], names=["a"])
    with pytest.raises(TypeError):
        list(encode_lines(batch))
