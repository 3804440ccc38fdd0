"""The warm cache: data files as Arrow IPC on the executor's own disk, memory-mapped.

What an epoch wrote is kept here too, so that any process of the host goes on at the cost of the change.
An entry is named by the checksum of the data file it stands for. It is trusted only with a record,
authenticated by a secret that only this user can read, of exactly the bytes that were written:
their inode, size and time, since this boot. Anything else is a miss, and the data file is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from arroyo_core.errors import SetupError
from arroyo_core.proto.state_pb2 import StateFile

DEFAULT_MAX_BYTES = 8 * 1024**3
FOLDER_VARIABLE = "ARROYO_STATE_CACHE"
MAX_BYTES_VARIABLE = "ARROYO_STATE_CACHE_BYTES"

#: Tables up to this size are also kept in the memory of the process, this many bytes of them in all.
SMALL_BYTES = 256 * 1024
SMALL_TOTAL_BYTES = 32 * 1024**2

_SECRET_FILE = "secret"
#: Touched by every process that looks the folder over; a new process need not, for so long.
_LOOKED_OVER_FILE = "looked-over"
_LOOK_S = 60
_SECRET_BYTES = 32
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class WarmCache:
    """A folder of memory-mapped tables, shared by all processes of one user on one host.

    Small tables stay in the memory of the process besides: mapping them costs more than reading them.
    Instances may be shared by threads.
    Never fails a caller: an entry that cannot be written or is not trusted is only a miss.
    """

    def __init__(self, folder: str | Path, *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self.folder = Path(folder)
        self.max_bytes = max_bytes
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = self.folder.stat()
        if found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise SetupError(
                f"the state cache {self.folder} must belong to this user and be closed to others (mode 700); "
                f"set {FOLDER_VARIABLE} to another folder, or to 'off'"
            )
        self._secret = self._load_secret()
        self._boot_id = _BOOT_ID.read_bytes().strip() if _BOOT_ID.exists() else b""
        self._lock = threading.Lock()
        self._small: OrderedDict[str, pa.Table] = OrderedDict()
        self._small_bytes = 0
        #: Bytes put since the folder was last looked over; None before the first time.
        self._unseen_bytes: int | None = None

    def get(self, file: StateFile, start: int, end: int) -> pa.Table | None:
        """The rows of `file` with a key hash in `start..end`, or None; a whole file serves any part of it."""
        for name in (_entry_name(file, None), _entry_name(file, (start, end))):
            with self._lock:
                table = self._small.get(name)
                if table is not None:
                    self._small.move_to_end(name)
                    return table
            table = self._open(name)
            if table is not None:
                return table
        return None

    def put(self, file: StateFile, table: pa.Table, part: tuple[int, int] | None = None) -> None:
        """Keep the rows of `file`, or those of the hashes `part`; a full disk is no error."""
        name = _entry_name(file, part)
        self._remember(name, table)
        unfinished = self.folder / f"unfinished-{name}-{secrets.token_hex(4)}"
        try:
            with pa.OSFile(str(unfinished), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            found = unfinished.stat()
            record = self._record(name, found)
            unfinished.replace(self.folder / f"{name}.arrow")
            unfinished.write_bytes(record)
            unfinished.replace(self.folder / f"{name}.record")
        except (OSError, pa.ArrowException):
            unfinished.unlink(missing_ok=True)
            return
        # Looking the folder over costs as much as it has entries: not at every put, and not in every new process.
        self._unseen_bytes = (self._unseen_bytes or 0) + found.st_size if self._is_looked_over() else None
        if self._unseen_bytes is None or self._unseen_bytes > self.max_bytes // 16:
            self._unseen_bytes = 0
            self._evict()

    def _is_looked_over(self) -> bool:
        """Whether this process has done so, or another one lately."""
        if self._unseen_bytes is not None:
            return True
        with contextlib.suppress(FileNotFoundError):
            return time.time() - (self.folder / _LOOKED_OVER_FILE).stat().st_mtime < _LOOK_S
        return False

    def size_bytes(self) -> int:
        """What the entries take on disk."""
        return sum(size for _, size, _ in self._entries())

    def _open(self, name: str) -> pa.Table | None:
        path = self.folder / f"{name}.arrow"
        try:
            record = (self.folder / f"{name}.record").read_bytes()
            source = pa.memory_map(str(path), "r")
            found = path.stat()
            if not hmac.compare_digest(record, self._record(name, found)):
                return None
            # The access time orders eviction; the modification time is part of the record and stays.
            os.utime(path, ns=(time.time_ns(), found.st_mtime_ns))
            table = pa.ipc.open_stream(source).read_all()
        except (OSError, pa.ArrowException):
            return None
        self._remember(name, table)
        return table

    def _remember(self, name: str, table: pa.Table) -> None:
        if table.nbytes > SMALL_BYTES:
            return
        with self._lock:
            if name in self._small:
                return
            self._small[name] = table
            self._small_bytes += table.nbytes
            while self._small_bytes > SMALL_TOTAL_BYTES:
                _, dropped = self._small.popitem(last=False)
                self._small_bytes -= dropped.nbytes

    def _record(self, name: str, found: os.stat_result) -> bytes:
        facts = f"{name}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}".encode() + b":" + self._boot_id
        return hmac.new(self._secret, facts, hashlib.sha256).digest()

    def _load_secret(self) -> bytes:
        path = self.folder / _SECRET_FILE
        unfinished = self.folder / f"unfinished-secret-{secrets.token_hex(8)}"
        with contextlib.suppress(FileExistsError):
            if not path.exists():
                unfinished.touch(mode=0o600)
                unfinished.write_bytes(secrets.token_bytes(_SECRET_BYTES))
                os.link(unfinished, path)
        unfinished.unlink(missing_ok=True)
        return path.read_bytes()

    def _evict(self) -> None:
        """Unlink the entries that were not used for longest; a mapping in use stays valid."""
        with contextlib.suppress(OSError):
            (self.folder / _LOOKED_OVER_FILE).touch()
        entries = sorted(self._entries(), key=lambda entry: entry[2])
        total = sum(size for _, size, _ in entries)
        for path, size, _ in entries:
            if total <= self.max_bytes:
                return
            path.with_suffix(".record").unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            total -= size

    def _entries(self) -> Iterator[tuple[Path, int, int]]:
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if entry.name.endswith(".arrow"):
                    with contextlib.suppress(FileNotFoundError):
                        found = entry.stat()
                        yield Path(entry.path), found.st_size, found.st_atime_ns


def default_warm_cache() -> WarmCache | None:
    """The cache of this user and host; None where `ARROYO_STATE_CACHE` is `off` or the folder is not ours.

    One per process and setting.
    """
    chosen = os.environ.get(FOLDER_VARIABLE, "")
    max_bytes = int(os.environ.get(MAX_BYTES_VARIABLE, DEFAULT_MAX_BYTES))
    return None if chosen == "off" else _default(chosen, max_bytes, os.getpid())


@lru_cache(maxsize=4)
def _default(chosen: str, max_bytes: int, _pid: int) -> WarmCache | None:
    folder = Path(chosen) if chosen else Path(tempfile.gettempdir()) / f"arroyo-state-cache-{os.getuid()}"
    try:
        return WarmCache(folder, max_bytes=max_bytes)
    except (OSError, SetupError):
        if chosen:
            raise
        return None


def _entry_name(file: StateFile, part: tuple[int, int] | None) -> str:
    name = file.checksum.hex()
    return name if part is None else f"{name}-{part[0]:016x}-{part[1]:016x}"
