"""Files of a store that has no inodes: a name, a size and an ETag are all that it tells."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from arroyo_filesystem.listing import File, file_of_info
from arroyo_filesystem.location import Login
from arroyo_filesystem.seen_files import SeenFiles
from arroyo_filesystem.watch_settings import AfterCommit, Order, WatchSettings


class View(dict[str, Any]):
    """A state table."""

    def insert(self, key: str, value: Any) -> None:
        self[key] = value

    def remove(self, key: str) -> None:
        del self[key]

    def get_all(self) -> dict[str, Any]:
        return dict(self)


class Tables:
    def __init__(self) -> None:
        self.view = View()

    def get_partitioned_keyed_state(self, *_: Any, **__: Any) -> View:
        return self.view


def watch(order: Order) -> WatchSettings:
    return WatchSettings(
        interval_us=1,
        order=order,
        is_start_new=False,
        lateness_us=10,
        max_remembered_files=100,
        until=None,
        after_commit=AfterCommit.KEEP,
        archive=None,
    )


def stored(name: str, etag: str, *, second: int = 0, size: int = 5) -> File:
    at = datetime(2026, 1, 31, 12, 0, second, tzinfo=UTC)
    return file_of_info({"name": name, "size": size, "ETag": f'"{etag}"', "LastModified": at, "type": "file"})


@pytest.mark.parametrize("order", list(Order))
def test_an_object_that_was_copied_and_deleted_is_a_renamed_one(order: Order) -> None:
    seen = SeenFiles(Tables(), watch(order), Login())  # type: ignore[arg-type]
    seen.remember(stored("b/a", "x"), number=0, now_us=1)
    found = seen.compare([stored("b/c", "x", second=1)], 2)
    assert [(former.path, now.path) for former, now in found.renamed] == [("b/a", "b/c")]
    assert found.new == []
    assert list(seen.files) == ["b/c"]


def test_a_copy_beside_its_original_and_an_empty_object_are_files_of_their_own() -> None:
    seen = SeenFiles(Tables(), watch(Order.NONE), Login())  # type: ignore[arg-type]
    seen.remember(stored("b/a", "x"), number=0, now_us=1)
    seen.remember(stored("b/e", "y", size=0), number=1, now_us=1)
    listed = [stored("b/a", "x"), stored("b/c", "x", second=1), stored("b/f", "y", size=0)]
    assert [file.path for file in seen.compare(listed, 2).new] == ["b/c", "b/f"]


def test_an_object_that_was_replaced_is_told_of_once() -> None:
    seen = SeenFiles(Tables(), watch(Order.TIME), Login())  # type: ignore[arg-type]
    seen.remember(stored("b/a", "x"), number=0, now_us=1)
    again = stored("b/a", "z", second=5)
    assert [file.path for file in seen.compare([again], 2).replaced] == ["b/a"]
    assert seen.compare([again], 3).replaced == []


def test_times_of_stores_are_read_however_they_are_written() -> None:
    expected = 1_769_860_800_000_000
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    for key, value in (
        ("LastModified", moment),
        ("last_modified", moment),
        ("updated", "2026-01-31T12:00:00.000Z"),
        ("mtime", moment.timestamp()),
    ):
        assert file_of_info({"name": "a", "size": 1, key: value}).modified_us == expected, key
    assert file_of_info({"name": "a", "size": 1, "updated": "yesterday"}).modified_us == 0
