"""Patterns of names: what they make, and that no two files can get one name."""

from __future__ import annotations

import random
import re
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_filesystem.file_names import FIELD_LENGTHS, MAX_LENGTH, check_names
from arroyo_filesystem.location import open_location
from arroyo_filesystem.partitions import FILE_NAME_BYTES, NameLimits
from arroyo_testing import ParallelHarness

from arroyo_core.api import ArroyoSchema
from arroyo_core.errors import ConfigError

SCHEMA = pa.schema({"n": pa.int64(), "k": pa.string()})


def rows(*numbers: int, k: str = "a") -> pa.RecordBatch:
    return pa.record_batch([pa.array(numbers, pa.int64()), pa.array([k] * len(numbers))], schema=SCHEMA)


def listed(folder: str) -> dict[str, list[int]]:
    """The rows of each visible file, by its path."""
    fs, root = fsspec.core.url_to_fs(folder)
    found = {}
    for path in fs.find(root) if fs.exists(root) else []:
        name = path.removeprefix(root).lstrip("/")
        if not name.startswith("_"):
            with fs.open(path) as stream:
                found[name] = pq.ParquetFile(stream).read()["n"].to_pylist()
    return found


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("", r"part-00001-000-0-[0-9a-f]{8}\.parquet"),
        ("{uuid}", r"[0-9a-f]{32}\.parquet"),
        ("orders_{time}.{epoch}_{subtask}_{part}_{unique}", r"orders_\d{8}T\d{6}Z\.00001_000_0_[0-9a-f]{8}\.parquet"),
        ("{prefix}-{partition}-{uuid}", r"part-k=b%2Fc,n=1-[0-9a-f]{32}\.parquet"),
    ],
)
def test_a_pattern_names_files(files: Any, folder: str, pattern: str, expected: str) -> None:
    table = pa.table({"n": [1], "k": ["b/c"], "x": [1]})
    files.write(folder, table, file_name=pattern, partition_by=["k", "n"])
    fs, root = fsspec.core.url_to_fs(folder)
    names = [name for name in fs.find(root) if "/_" not in name.removeprefix(root)]
    assert len(names) == 1
    assert re.fullmatch(rf"k=b%2Fc/n=1/{expected}", names[0].removeprefix(root).lstrip("/"))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("orders", "one name"),
        ("{prefix}-{epoch}-{subtask}-{part}", "one name"),
        ("{prefix}-{unique}", "one name"),
        ("{epoch}-{part}-{unique}", "one name"),
        ("{uid}", r"there is no \{uid\}"),
        ("{}-{uuid}", r"there is no \{\}"),
        ("{epoch:03}-{uuid}", "there is no"),
        ("{{uuid}}", "letters, digits"),
        ("a/{uuid}", "letters, digits"),
        ("ü{uuid}", "letters, digits"),
        ("_{uuid}", "begins with a letter"),
        (".{uuid}", "begins with a letter"),
        ("{partition}-{uuid}", "begins with a letter"),
        ("a{partition}{partition}{uuid}", "once"),
        ("x" * 60 + "{uuid}", "up to 92 characters"),
        ("x.compacted.{uuid}", "arroyo files compact"),
        ("{uuid}.compacted", "arroyo files compact"),
    ],
)
def test_a_pattern_whose_names_could_meet_or_hide_is_refused(
    files: Any, tmp_path: Any, pattern: str, text: str
) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        files.make_sink(tmp_path, file_name=pattern, partition_by=["k"])
    assert caught.value.field == "file_name"


def test_a_pattern_with_folders_needs_folders(files: Any, tmp_path: Any) -> None:
    with pytest.raises(ConfigError, match="needs partition_by"):
        files.make_sink(tmp_path, file_name="{prefix}-{partition}-{uuid}")


def test_names_are_as_short_as_limits_of_paths_take_them_to_be() -> None:
    most = {"time": 4e15, "epoch": 10**11, "subtask": 10**4, "part": 10**5}
    pattern = "-".join(f"{{{field}}}" for field in ("prefix", "time", "epoch", "subtask", "part", "unique"))
    names = check_names("p" * 30, pattern, ())
    name = names.name(
        epoch=int(most["epoch"]),
        subtask=int(most["subtask"]),
        part=int(most["part"]),
        unique="0" * 32,
        folder="",
        now_us=int(most["time"]),
    )
    assert len(name) == 30 + sum(FIELD_LENGTHS[field] for field in ("time", "epoch", "subtask", "part", "unique")) + 5
    assert len(name) <= MAX_LENGTH
    assert len(f"/{name}.debezium.gz") <= FILE_NAME_BYTES


def test_a_name_that_repeats_its_folder_has_room_for_it(tmp_path: Any) -> None:
    limits = NameLimits.of(open_location(str(tmp_path), {}, field="path"), repeats_folder=True)
    assert limits.problem("k=" + "a" * 153) is None
    assert "{partition}" in (limits.problem("k=" + "a" * 154) or "")
    assert NameLimits.of(open_location(str(tmp_path), {}, field="path")).problem("k=" + "a" * 154) is None


@pytest.mark.parametrize("pattern", ["{uuid}", "{unique}.{part}.{subtask}.{epoch}"])
def test_files_of_epochs_that_are_run_again_meet_none_of_before(files: Any, folder: str, pattern: str) -> None:
    """Retries, crashes, other parallelisms, and a job that begins again from nothing beside its old output."""
    draw = random.Random(1)
    given: list[int] = []
    for _life in range(3):
        with ParallelHarness(
            lambda: files.make_sink(folder, file_name=pattern, partition_by=["k"], max_file_rows=3),
            inputs=[ArroyoSchema(SCHEMA)],
            parallelism=2,
        ) as harness:
            for epoch in range(6):
                numbers = list(range(len(given), len(given) + 10))
                for attempt in range(2):
                    harness.process(rows(*numbers, k=draw.choice("ab")))
                    if attempt == 0:
                        harness.checkpoint(is_lost=True)
                        harness.crash(draw.choice([1, 2, 3]))
                staged = harness.checkpoint()
                given += numbers
                before = listed(folder)
                harness.commit(staged)
                harness.commit(staged)
                assert before.items() <= listed(folder).items(), epoch
                harness.restore(draw.choice([1, 2, 3]))
    assert sorted(number for some in listed(folder).values() for number in some) == given
