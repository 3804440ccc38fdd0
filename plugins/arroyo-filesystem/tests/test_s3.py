"""The same operators on S3's protocol, from a server of this process on a loopback port."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("s3fs")
moto_server = pytest.importorskip("moto.server")


@pytest.fixture(scope="module")
def storage_options() -> Iterator[dict[str, str]]:
    import s3fs

    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    options = {"endpoint_url": f"http://127.0.0.1:{port}", "key": "key", "secret": "secret"}
    s3fs.S3FileSystem(**options).mkdir("bucket")
    yield options
    server.stop()


@pytest.mark.parametrize("kind", ["parquet", "json", "csv", "arrow"])
def test_committed_files_on_s3_are_read_back_in_splits(files: Any, storage_options: dict[str, str], kind: str) -> None:
    table = pa.table({"k": ["a/b", "c", None] * 20, "n": list(range(60))})
    url = f"s3://bucket/{kind}"
    with files.sink(url, table.schema, format=kind, partition_by=["k"], storage_options=storage_options) as harness:
        for batch in table.to_batches(max_chunksize=25):
            harness.process(batch)
        staged = harness.checkpoint()
        harness.commit(staged)
        harness.commit(staged)
    source = files.source(url, storage_options=storage_options, split_size=40, batch_rows=7)
    read = source.run_all(rows=20, parallelism=2)
    source.close()
    assert sorted(read["n"].to_pylist()) == list(range(60))
    import s3fs

    assert not [path for path in s3fs.S3FileSystem(**storage_options).find(f"bucket/{kind}") if "_arroyo" in path]
