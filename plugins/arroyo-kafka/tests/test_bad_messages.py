"""Messages that cannot be read: the policies, and letters that are committed with the epoch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from arroyo_kafka.staged_files import LostFileError

from arroyo_core.errors import OperatorError

from .support.cluster import Cluster
from .support.sources import Sources, ids, message

MakeTopic = Callable[..., str]
VALUES = [message(0), b"\xff\xfe no JSON", message(1), b"", b'{"id": "x"}', message(2)]


@pytest.fixture
def name(cluster: Cluster, topic: MakeTopic) -> str:
    name = topic()
    cluster.produce(name, VALUES, keys=[None, b"k", None, None, None, None])
    return name


def letters(folder: Path) -> list[dict[str, object]]:
    found = [row for path in sorted(folder.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    return sorted(found, key=lambda row: row["offset"])


def test_a_bad_message_fails_the_job_and_says_where_it_is(sources: Sources, name: str) -> None:
    with pytest.raises(OperatorError, match=rf"{name}\[0\]@1: .*no JSON"):
        sources(topic=name, until="latest").run()


def test_bad_messages_are_dropped_and_counted(sources: Sources, name: str) -> None:
    run = sources(topic=name, until="latest", bad_data="drop", metadata={"offset": "offset"}).run()
    assert list(zip(ids(run), run.table["offset"].to_pylist(), strict=True)) == [(0, 0), (1, 2), (2, 5)]
    assert run.counters == {"bad_rows": 3}
    assert [text.startswith(f"dropped a bad message: {name}[0]@1: ") for text in run.warnings] == [True]


def test_letters_are_seen_when_their_epoch_is_committed(sources: Sources, name: str, tmp_path: Path) -> None:
    folder = tmp_path / "dead"
    harness = sources(topic=name, until="latest", bad_data="dead_letter", dead_letter=str(folder))
    run = harness.run()
    assert (ids(run), run.is_final) == ([0, 1, 2], True)
    assert letters(folder) == []
    harness.commit()
    found = letters(folder)
    assert [(row["topic"], row["partition"], row["offset"], row["value"]) for row in found] == [
        (name, 0, offset, VALUES[offset]) for offset in (1, 3, 4)
    ]
    assert found[0]["key"] == b"k"
    assert found[0]["_error_position"] == f"{name}[0]@1"
    assert (found[0]["_error_operator"], found[0]["_error_epoch"]) == ("kafka.source", 1)
    assert found[0]["_error"]


def test_a_commit_that_is_repeated_changes_nothing(sources: Sources, name: str, tmp_path: Path) -> None:
    folder = tmp_path / "dead"
    harness = sources(topic=name, until="latest", bad_data="dead_letter", dead_letter=str(folder))
    harness.run(is_lost=True)
    harness.run()
    harness.commit()
    before = letters(folder)
    harness.commit()
    assert len(before) == 3
    assert letters(folder) == before
    # What the lost epoch staged is gone as well.
    assert [path for path in folder.rglob("*") if path.is_file()] == list(folder.glob("*.parquet"))


def test_letters_that_are_gone_before_their_commit_are_an_error(sources: Sources, name: str, tmp_path: Path) -> None:
    folder = tmp_path / "dead"
    harness = sources(topic=name, until="latest", bad_data="dead_letter", dead_letter=str(folder))
    harness.run()
    for path in folder.rglob("*.parquet"):
        path.unlink()
    with pytest.raises(OperatorError, match="neither file exists") as raised:
        harness.commit()
    assert isinstance(raised.value.__cause__, LostFileError)


def test_epochs_without_bad_messages_leave_no_file(
    cluster: Cluster, topic: MakeTopic, sources: Sources, tmp_path: Path
) -> None:
    good = topic()
    cluster.produce(good, [message(1)])
    harness = sources(topic=good, until="latest", bad_data="dead_letter", dead_letter=str(tmp_path / "dead"))
    harness.run()
    harness.commit()
    assert letters(tmp_path / "dead") == []
