"""User and password of a URL open files, and are in no state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import fsspec
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_filesystem import progress
from arroyo_filesystem.location import Login, without_login
from fsspec import AbstractFileSystem
from fsspec.registry import _registry as registered

from arroyo_core.state import get_storage_provider
from arroyo_core.state.merge import table_files

URL = "weblike://reader:{password}@host/data"
CONTENT = {"/data/a.csv": b"n\n1\n2\n3\n", "/data/b.csv": b"n\n4\n5\n6\n"}


class WebLike(AbstractFileSystem):
    """Files whose paths are whole URLs, with the login in each of them, as those of HTTP are."""

    protocol = "weblike"
    cachable = False
    passwords: tuple[str, ...] = ("s3cr3t",)

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        return path

    def _name(self, path: str) -> str:
        assert any(f"//reader:{password}@" in path for password in self.passwords), f"no login in {path}"
        return path.partition("@host")[2].rstrip("/")

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        name = self._name(path)
        if name in CONTENT:
            return {"name": path, "size": len(CONTENT[name]), "type": "file"}
        return {"name": path, "size": 0, "type": "directory"}

    def ls(self, path: str, detail: bool = True, **_: Any) -> Any:
        below = [f"{path.rstrip('/')}/{name.rpartition('/')[2]}" for name in CONTENT]
        return [self.info(each) for each in below] if detail else below

    def find(self, path: str, detail: bool = False, **_: Any) -> Any:  # type: ignore[override]
        return {info["name"]: info for info in self.ls(path)}

    def _open(self, path: str, mode: str = "rb", **_: Any) -> Any:  # type: ignore[override]
        memory = fsspec.filesystem("memory")
        memory.pipe_file(f"/weblike{self._name(path)}", CONTENT[self._name(path)])
        return memory.open(f"/weblike{self._name(path)}", mode)


@pytest.fixture(autouse=True)
def weblike() -> Iterator[None]:
    fsspec.register_implementation("weblike", WebLike, clobber=True)
    yield
    registered.pop("weblike", None)


def stored(harness: Any, *, since: int = 0) -> str:
    """What the last checkpoint refers to, of files that were written after an epoch."""
    state = harness._state
    storage = get_storage_provider(state.url)
    paths = [
        file.path
        for table in state.metadata.table_checkpoint_metadata.values()
        for file in table_files(table)
        if file.epoch > since
    ]
    return repr([pq.read_table(pa.BufferReader(storage.read(path))).to_pylist() for path in paths])


def make_source(files: Any, password: str) -> Any:
    return files.source(URL.format(password=password), format="csv", schema={"n": "int64"}, split_size=4)


def test_a_password_in_a_path_opens_files_and_is_not_in_the_state(files: Any) -> None:
    harness = make_source(files, "s3cr3t")
    rows: list[int] = []
    while not (done := harness.run(rows=2)).is_final:
        rows += done.table["n"].to_pylist()
        assert "host/data/a.csv" in stored(harness)
        assert "s3cr3t" not in stored(harness)
    harness.close()
    assert sorted(rows + done.table["n"].to_pylist()) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("password", ["s3cr3t", "another"])
def test_state_of_a_former_version_goes_on_and_is_written_again_without_the_password(
    files: Any, monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    harness = make_source(files, "s3cr3t")
    with monkeypatch.context() as former:
        former.setattr(progress, "_encode", msgspec.msgpack.encode)
        first = harness.run(rows=2)
    assert "s3cr3t" in stored(harness)
    monkeypatch.setattr(WebLike, "passwords", (password,))
    later = make_source(files, password)
    later._state, harness._state = harness._state, later._state
    rows = first.table["n"].to_pylist()
    for _ in range(2):
        rows += later.run(rows=2).table["n"].to_pylist()
    assert sorted(rows) == [1, 2, 3, 4, 5, 6]
    later.run()
    assert "host/data/a.csv" in stored(later, since=1)
    assert "s3cr3t" not in stored(later, since=1)
    harness.close()
    later.close()


def test_a_login_is_taken_out_and_put_back() -> None:
    url = "https://reader:p@ss@host/data/a.csv?x=1"
    assert without_login(url) == "https://host/data/a.csv?x=1"
    login = Login.of(url)
    assert login.put_into("https://host/data/b.csv") == "https://reader:p@ss@host/data/b.csv"
    assert login.put_into("https://old:secret@host/data/b.csv") == "https://reader:p@ss@host/data/b.csv"
    assert login.put_into("https://other/data/b.csv") == "https://other/data/b.csv"
    assert login.put_into("/data/b@c.csv") == "/data/b@c.csv"
    assert "p@ss" not in repr(login)
    assert without_login("simplecache::https://u:p@host/a") == "simplecache::https://host/a"
    assert without_login("s3://bucket/a@b.csv") == "s3://bucket/a@b.csv"
