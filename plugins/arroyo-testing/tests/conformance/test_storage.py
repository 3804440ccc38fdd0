"""The storage of checkpoints that the core brings along keeps the rules; storage that does not is caught."""

from __future__ import annotations

import uuid

import pytest
from arroyo_testing.conformance import Conformance, ConformanceError, StorageCase

from arroyo_core.state.local_storage import LocalDriver

conformance = Conformance(
    None,
    [
        StorageCase("local files", lambda folder: str(folder)),
        StorageCase("file URL", lambda folder: folder.as_uri()),
        StorageCase("memory", lambda folder: f"memory://{uuid.uuid4().hex}"),
    ],
)


def fault(check):
    (found,) = [each for each in Conformance(None, [StorageCase("disk", str)]).checks() if each.name == check]
    with pytest.raises(ConformanceError) as raised:
        found.run()
    return str(raised.value)


def test_a_create_that_asks_first_is_caught(monkeypatch):
    def create(self, path, data):
        try:
            self.size(path)
        except FileNotFoundError:
            self.write(path, data)
            return True
        return False

    monkeypatch.setattr(LocalDriver, "create", create)
    assert "of 8 writers that created one file at the same time were told that they won" in fault(
        "one_of_racing_writers_wins"
    )


def test_a_write_that_is_not_atomic_is_caught(monkeypatch):
    def write(self, path, data, *, is_durable=True):
        target_path = self._root / path
        target_path.parent.mkdir(parents=True, exist_ok=True)
        with target_path.open("wb") as target:
            for start in range(0, len(data), 1000):
                target.write(data[start : start + 1000])
                target.flush()

    monkeypatch.setattr(LocalDriver, "write", write)
    assert "a write must become visible as a whole" in fault("whole_files_only")


def test_a_listing_by_prefix_is_caught(monkeypatch):
    listing = LocalDriver.list

    def by_prefix(self, prefix):
        parent = prefix.rpartition("/")[0]
        return [file for file in listing(self, parent) if file.path.startswith(prefix)]

    monkeypatch.setattr(LocalDriver, "list", by_prefix)
    assert "the listing of a folder gives" in fault("listing")
