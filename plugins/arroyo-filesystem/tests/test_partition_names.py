"""Values that senders choose name folders; no value may stop a commit, leave the sink, or become another value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arroyo_filesystem.location import open_location
from arroyo_filesystem.partitions import MAX_COMPONENT_BYTES, NULL_FOLDER, NameLimits

from arroyo_core.errors import ConfigError, OperatorError

LONG = "x" * 300


def rows(*values: str | None) -> pa.Table:
    return pa.table({"n": list(range(len(values))), "k": pa.array(values, pa.string())})


def write(files: Any, path: Path, table: pa.Table, **config: Any) -> Any:
    """One epoch, up to its commit; the counters and warnings of the sink."""
    with files.sink(path, table.schema, partition_by=["k"], **config) as harness:
        for batch in table.to_batches():
            harness.process(batch)
        harness.end_of_data()
        harness.commit(harness.checkpoint())
        return harness


def test_a_value_that_is_too_long_for_a_folder_fails_before_the_epoch_is_published(files: Any, tmp_path: Path) -> None:
    table = rows("a", LONG)
    with files.sink(tmp_path / "out", table.schema, partition_by=["k"]) as harness:
        with pytest.raises(OperatorError, match="column 'k' with 300 characters") as raised:
            harness.process(table.to_batches()[0])
        assert f"{MAX_COMPONENT_BYTES} are allowed" in str(raised.value)
        assert "bad_partitions: drop" in str(raised.value)
        harness.restore()
    assert not list((tmp_path / "out").glob("k=*"))


def test_the_length_is_that_of_the_encoded_value(files: Any, tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="100 characters makes a folder name of 602 bytes"):
        write(files, tmp_path / "out", rows("\u00e9" * 100))
    longest = "x" * (MAX_COMPONENT_BYTES - len("k="))
    write(files, tmp_path / "out", rows(longest))
    assert files.read(tmp_path / "out")["k"].to_pylist() == [longest]


def test_rows_without_a_folder_can_be_dropped_and_are_counted(files: Any, tmp_path: Path) -> None:
    harness = write(files, tmp_path / "out", rows("a", LONG, "b", LONG), bad_partitions="drop")
    assert sorted(files.read(tmp_path / "out")["k"].to_pylist()) == ["a", "b"]
    assert harness.counters["bad_rows"] == 2


def test_an_unknown_policy_is_a_mistake(files: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown policy"):
        files.make_sink(tmp_path, partition_by=["k"], bad_partitions="keep")


ODD = ["", ".", "..", "../x", "/etc", "a/b", "\0", "\n", "\x1b[2J", "%2e%2e", "~", " ", NULL_FOLDER, "C:\\x", None]


def test_odd_values_come_back_as_they_were_and_stay_below_the_sink(files: Any, tmp_path: Path) -> None:
    write(files, tmp_path / "out", rows(*ODD))
    found = files.read(tmp_path / "out")
    assert dict(zip(found["n"].to_pylist(), found["k"].to_pylist(), strict=True)) == dict(enumerate(ODD))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_more_partitions_in_an_epoch_than_allowed_are_an_error_that_names_the_option(
    files: Any, tmp_path: Path
) -> None:
    table = rows(*map(str, range(11)))
    with files.sink(tmp_path / "out", table.schema, partition_by=["k"], max_partitions=10) as harness:
        with pytest.raises(OperatorError, match=r"more than 10 folders in one epoch.*raise max_partitions"):
            harness.process(table.to_batches()[0])
        harness.restore()
    write(files, tmp_path / "more", table, max_partitions=11)
    assert files.read(tmp_path / "more").num_rows == 11


def test_the_limit_of_partitions_is_one_of_each_epoch(files: Any, tmp_path: Path) -> None:
    with files.sink(tmp_path / "out", rows("a").schema, partition_by=["k"], max_partitions=2) as harness:
        for value in "abcdef":
            harness.process(rows(value).to_batches()[0])
            harness.commit(harness.checkpoint())
            harness.restore()
    assert files.read(tmp_path / "out").num_rows == 6


def test_keys_of_object_stores_are_limited_as_a_whole() -> None:
    location = open_location("s3://bucket/out", {"anon": "true"}, field="path")
    limits = NameLimits.of(location)
    assert limits.problem(f"k={LONG}") is None
    assert "names of 1211 bytes" in str(limits.problem("/".join(f"{name}={'x' * 300}" for name in "abcd")))
