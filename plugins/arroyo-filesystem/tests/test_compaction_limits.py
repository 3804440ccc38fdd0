"""What a compaction leaves alone, and how long the names are that it gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_filesystem.compacted import merged_name
from arroyo_filesystem.location import open_location
from arroyo_filesystem.partitions import longest_name

from arroyo_core.errors import DataError

from .support.compacted import SCHEMA, compaction, rows, shown, write


def test_names_of_merged_files_are_no_longer_than_the_file_system_takes(files: Any, tmp_path: Path) -> None:
    pattern, k = "x" * 52 + "{partition}{uuid}", "b" * 153
    with files.sink(tmp_path, SCHEMA, partition_by=["k"], file_name=pattern) as harness:
        for number in range(6):
            harness.process(rows(number, k=k))
            harness.commit(harness.checkpoint())
            harness.restore()
            if number % 2:
                assert compaction(tmp_path).run().files == 1
    assert files.read(tmp_path)["n"].to_pylist() == list(range(6))
    (name,) = shown(tmp_path)
    assert re.search(r"/x{52}k=b+\.compacted\.[0-9a-f]{32}\.parquet$", name)


@pytest.mark.parametrize("longest", [255, 60])
def test_a_name_that_is_cut_is_told_apart_by_what_is_random(longest: int) -> None:
    first, unique = f"part-00001-{'y' * 200}.jsonl", "0123456789abcdef" * 2
    name = merged_name(first, unique, longest=longest)
    if longest == 255:
        assert name == f"part-00001-{'y' * 200}.compacted.01234567.jsonl"
    else:
        assert name == f"part-00001-.compacted.{unique}.jsonl"
    # It stays so when there is room again.
    assert len(merged_name(name, unique[::-1], longest=255)) == len(name)


def test_a_key_and_a_path_have_room_for_the_name_of_a_merged_file() -> None:
    store, disk = (open_location(url, {}, field="path") for url in ("memory://bucket/out", "/data/out"))
    folder = "k=" + "a" * 900
    assert longest_name(store, folder) == 1024 - len(f"bucket/out/{folder}/")
    assert longest_name(disk, folder) == longest_name(disk, "") == 255
    deep = "/".join(["k=" + "a" * 250] * 16)
    assert longest_name(disk, deep) == 4095 - len(f"/data/out/{deep}/") < 255


@pytest.mark.parametrize("harm", ["rows", "bytes", "footer"])
def test_files_that_are_not_what_was_written_do_not_keep_others_from_being_compacted(
    files: Any, tmp_path: Path, harm: str
) -> None:
    write(files, tmp_path, *(rows(number, k="abc"[number % 3]) for number in range(6)), partition_by=["k"])
    bad = min((tmp_path / "k=a").iterdir())
    content = bad.read_bytes()
    if harm == "rows":
        pq.write_table(pa.table({"n": [1, 2, 3]}), bad)
    else:
        bad.write_bytes(b"PAR1" + bytes(100) + content[104:] if harm == "bytes" else content[:-8] + bytes(8))
    with pytest.raises(DataError, match=r"^[^\n]*k=a/[^\n]*; of the other files 4 became 2$"):
        compaction(tmp_path).run()
    assert [len(list((tmp_path / f"k={k}").iterdir())) for k in "abc"] == [2, 1, 1]
    assert not list(tmp_path.glob("_arroyo_staging/compaction/*"))
    bad.write_bytes(content)
    assert compaction(tmp_path).run().merged == 2
    assert files.read(tmp_path)["n"].to_pylist() == [0, 3, 1, 4, 2, 5]


@pytest.mark.parametrize("is_nested", [False, True])
def test_arrow_files_with_dictionaries_of_their_own_are_left_alone(files: Any, tmp_path: Path, is_nested: bool) -> None:
    coded = []
    for number in range(2):
        column = pa.array([f"{number}"]).dictionary_encode()
        values = pa.ListArray.from_arrays(pa.array([0, 1]), column) if is_nested else column
        coded.append(pa.record_batch({"n": pa.array([number]), "d": values}))
    write(files, tmp_path / "out", *coded, format="arrow")
    write(files, tmp_path / "out", *(batch.drop_columns(["d"]) for batch in coded), format="arrow")
    done = compaction(tmp_path / "out").run()
    assert (done.merged, done.files) == (2, 1)
    assert sorted(files.read(tmp_path / "out")["n"].to_pylist()) == [0, 0, 1, 1]
