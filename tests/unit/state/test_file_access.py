"""Files of a remote store are read and written side by side, and a checkpoint waits for all of them."""

from __future__ import annotations

import threading

import pytest

from arroyo_core.errors import StateError
from arroyo_core.state import StorageProvider

from .support.recording import DictDriver
from .support.state_life import Life, contents, expected_at


class RemoteDriver(DictDriver):
    """Notes which threads call; fails writes of files whose name has `broken` in it."""

    is_remote = True
    broken = "nothing"

    def __init__(self, files=None):
        super().__init__(files)
        self.threads = {"read": set(), "write": set()}

    def read(self, path):
        if path.endswith(".parquet"):
            self.threads["read"].add(threading.get_ident())
        return super().read(path)

    def write(self, path, data, *, is_durable=True):
        if self.broken in path:
            raise PermissionError(f"{path} is locked")
        if path.endswith(".parquet"):
            self.threads["write"].add(threading.get_ident())
        super().write(path, data)


def test_a_life_on_a_remote_store_is_the_same():
    driver = RemoteDriver()
    life = Life(StorageProvider("dict://", driver=driver))
    life.run(8)
    assert contents(life.job.open_at(life.job.checkpoint, 2), 8) == expected_at(8)
    assert threading.get_ident() not in driver.threads["write"]
    assert len(driver.threads["read"]) > 1


def test_a_file_that_could_not_be_written_fails_the_checkpoint():
    driver = RemoteDriver()
    life = Life(StorageProvider("dict://", driver=driver))
    life.run(2)
    driver.broken = "table-op-latest"
    with pytest.raises(StateError, match=r"table-op-latest.* is locked"):
        life.run(3)
    driver.broken = "nothing"
    assert life.job.backend.resolve_latest().checkpoint.epoch == 2
    again = Life(StorageProvider("dict://", driver=driver))
    again.run(4)
    assert contents(again.job.open_at(again.job.checkpoint, 1), 4) == expected_at(4)
