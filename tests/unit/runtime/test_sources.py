"""What a source hands over, and how its thread ends."""

import pyarrow as pa

from arroyo_core.runtime import sources

LINE = [
    {"id": "s", "operator": "test.rows", "config": {"count": 100, "batch": 50}},
    {"id": "p", "operator": "test.passing", "inputs": ["s"]},
    {"id": "o", "operator": "test.sink", "inputs": ["p"]},
]


def test_a_large_batch_reaches_the_operators_in_parts(lab, monkeypatch):
    row_bytes = pa.record_batch([[1], [1], [1]], names=["n", "key", "at"]).nbytes
    monkeypatch.setattr(sources, "SOURCE_BATCH_BYTES", 10 * row_bytes)
    result = lab.run(LINE)
    assert lab.trace.of("p").count("batch 0/1") == 10
    assert lab.trace.numbers() == dict.fromkeys(range(100), 1)
    assert result.operators["s"].batches_sent == 10
    assert result.operators["s"].bytes_sent == 100 * row_bytes
