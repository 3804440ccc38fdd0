"""The warm cache: data files as Arrow IPC on the executor's own disk, memory-mapped.

What an epoch wrote is kept here too, so that any process of the host goes on at the cost of the change.

    {folder}/{job}/{operator}-{subtask}/{epoch}-{checksum}.arrow

An entry is named by the checksum of the data file it stands for. Behind its rows it has their CRC and a record,
authenticated by a secret that only this user can read, of exactly the file that was written: its inode, size and
time, since this boot. Anything else is a miss, and the data file is read. Entries that the job no longer needs are
removed by the subtask that put them there (`Shelf.retain`), all others when they have been idle for long.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import os
import secrets
import struct
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from io import FileIO
from pathlib import Path

import pyarrow as pa

from arroyo_core.errors import SetupError
from arroyo_core.ids import TaskInfo
from arroyo_core.local_folders import STATE_CACHE, make_private_folder, private_opener
from arroyo_core.proto.state_pb2 import StateFile
from arroyo_core.state import paths
from arroyo_core.state.cache_sweep import ENTRY_SUFFIX, UNFINISHED_PREFIX, CacheLimits, dead_entries, sweep

DEFAULT_MAX_BYTES = 8 * 1024**3
FOLDER_VARIABLE = STATE_CACHE.variable
MAX_BYTES_VARIABLE = "ARROYO_STATE_CACHE_BYTES"

#: Tables up to this size are also kept in the memory of the process, this many bytes of them in all.
SMALL_BYTES = 256 * 1024
SMALL_TOTAL_BYTES = 32 * 1024**2
#: What a table takes besides its rows, with its schema and buffers: most of it where epochs are short.
_TABLE_BYTES = 24 * 1024
#: Tables up to this size are encoded in memory, which saves mapping the file that was just written.
BUFFERED_BYTES = 2 * 1024**2

#: A process reads the whole of an entry when it opens it first, and again when it opens it so much later: to do so at
#: every epoch would make an epoch cost as much as the state, not as the change.
RECHECK_S = 60

_SECRET_FILE = "secret"
#: Touched by every process that looks the folder over; another one need not, for so long.
_LOOKED_OVER_FILE = "looked-over"
_LOOK_S = 60
_SECRET_BYTES = 32
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

#: What follows the rows: their length, their CRC, the record.
_TRAILER = struct.Struct("<QI32s")


@dataclass(frozen=True, slots=True)
class _Checked:
    """The file whose content a process has read, and when."""

    inode: int
    mtime_ns: int
    at_s: float


class WarmCache:
    """A folder of memory-mapped tables, shared by all processes of one user on one host.

    Small tables stay in the memory of the process besides: mapping them costs more than reading them.
    Instances may be shared by threads.
    Never fails a caller: an entry that cannot be written or is not trusted is only a miss.
    """

    def __init__(self, folder: str | Path, *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self.folder = Path(folder)
        self.max_bytes = max_bytes
        STATE_CACHE.make(self.folder)
        self._secret = self._load_secret()
        self._boot_id = _BOOT_ID.read_bytes().strip() if _BOOT_ID.exists() else b""
        self._lock = threading.Lock()
        self._small: OrderedDict[str, pa.Table] = OrderedDict()
        self._small_bytes = 0
        self._checked: dict[Path, _Checked] = {}
        #: Bytes put since this process looked the folder over, and when it asks again whether anyone has.
        self._unseen_bytes = 0
        self._next_look_s = 0.0

    def shelf(self, url: str, task: TaskInfo, *, gives_own: bool = False, lives_on: bool = False) -> Shelf:
        """The part of the cache that one subtask of a job, whose state is below `url`, puts its entries in.

        With `gives_own` it gives nothing but what is put into it from now on. With `lives_on` the next epoch of the
        subtask has its tables in memory: small ones, which are soon read from storage, are not written here.
        """
        job = hashlib.sha256(f"{url}\n{task.job_id}".encode()).hexdigest()[:16]
        operator = hashlib.sha256(task.operator_id.encode()).hexdigest()[:12]
        folder = self.folder / job / operator
        return Shelf(self, folder, task.task_index, gives_own=gives_own, writes_small=not lives_on)

    def load(self, path: Path, name: str, *, is_checked: bool) -> pa.Table | None:
        """The entry at `path`, or None; with `is_checked` its content is read now, whoever did so before."""
        try:
            buffer = pa.memory_map(str(path), "r").read_buffer()
            found = path.stat()
            if not self._is_trusted(path, found, buffer, is_checked=is_checked):
                return None
            # The access time orders eviction; the modification time is part of the record and stays.
            os.utime(path, ns=(time.time_ns(), found.st_mtime_ns))
            table = pa.ipc.open_stream(buffer).read_all()
        except (OSError, pa.ArrowException):
            return None
        self.remember(name, table)
        return table

    def store(self, path: Path, table: pa.Table) -> None:
        """Make an entry; a full disk is not an error."""
        unfinished = path.parent / f"{UNFINISHED_PREFIX}{secrets.token_hex(8)}"
        try:
            size_bytes = self._write(unfinished, path, table)
        except (OSError, pa.ArrowException):
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            return
        self._unseen_bytes += size_bytes
        self.look_over()

    def look_over(self) -> None:
        """Remove what is idle, unfinished or too much; costs as much as there are entries, so not every time."""
        now_s = time.monotonic()
        is_full = self._unseen_bytes > self.max_bytes // 16
        if not is_full and now_s < self._next_look_s:
            return
        self._next_look_s = now_s + _LOOK_S
        mark = self.folder / _LOOKED_OVER_FILE
        with contextlib.suppress(OSError):
            if is_full or not mark.exists() or time.time() - mark.stat().st_mtime >= _LOOK_S:
                mark.touch(mode=0o600)
                self._unseen_bytes = 0
                sweep(self.folder, CacheLimits(max_bytes=self.max_bytes), now_s=time.time())
        self._forget_checks(now_s)

    def recall(self, name: str) -> pa.Table | None:
        """A small table from the memory of this process."""
        with self._lock:
            table = self._small.get(name)
            if table is not None:
                self._small.move_to_end(name)
            return table

    def remember(self, name: str, table: pa.Table) -> None:
        """Keep a table in the memory of this process, if it is small."""
        if table.nbytes > SMALL_BYTES:
            return
        with self._lock:
            if name in self._small:
                return
            self._small[name] = table
            self._small_bytes += _held_bytes(table)
            while self._small_bytes > SMALL_TOTAL_BYTES:
                _, dropped = self._small.popitem(last=False)
                self._small_bytes -= _held_bytes(dropped)

    def _write(self, unfinished: Path, path: Path, table: pa.Table) -> int:
        try:
            file = _create(unfinished)
        except FileNotFoundError:
            make_private_folder(path.parent)
            file = _create(unfinished)
        with file:
            length, crc = _write_rows(file, table)
            # A filesystem may round times: what is recorded is what it made of this one, now and below.
            now_ns = time.time_ns()
            os.utime(file.fileno(), ns=(now_ns, now_ns))
            found = os.fstat(file.fileno())
            record = self._record(path.name, found.st_ino, length, crc, mtime_ns=found.st_mtime_ns)
            if file.write(_TRAILER.pack(length, crc, record)) != _TRAILER.size:
                raise OSError(errno.ENOSPC, "no room for the end of a cache entry")
            os.utime(file.fileno(), ns=(now_ns, now_ns))
        unfinished.replace(path)
        return length + _TRAILER.size

    def _is_trusted(self, path: Path, found: os.stat_result, buffer: pa.Buffer, *, is_checked: bool) -> bool:
        """Whether the file is the one that was written, and its content, unless that was checked lately, as well."""
        length = buffer.size - _TRAILER.size
        if length < 0 or found.st_size != buffer.size:
            return False
        view = memoryview(buffer)
        recorded, crc, record = _TRAILER.unpack(view[length:])
        expected = self._record(path.name, found.st_ino, length, crc, mtime_ns=found.st_mtime_ns)
        if recorded != length or not hmac.compare_digest(record, expected):
            return False
        known, now_s = self._checked.get(path), time.monotonic()
        is_known = known is not None and (known.inode, known.mtime_ns) == (found.st_ino, found.st_mtime_ns)
        if is_known and known is not None and not is_checked and now_s - known.at_s < RECHECK_S:
            return True
        if zlib.crc32(view[:length]) != crc:
            # Nothing can come of it but a miss at every epoch.
            path.unlink(missing_ok=True)
            return False
        self._checked[path] = _Checked(found.st_ino, found.st_mtime_ns, now_s)
        return True

    def _forget_checks(self, now_s: float) -> None:
        self._checked = {path: known for path, known in self._checked.copy().items() if now_s - known.at_s < RECHECK_S}

    def _record(self, name: str, inode: int, length: int, crc: int, *, mtime_ns: int) -> bytes:
        facts = f"{name}:{inode}:{length}:{crc}:{mtime_ns}".encode() + b":" + self._boot_id
        return hmac.new(self._secret, facts, hashlib.sha256).digest()

    def _load_secret(self) -> bytes:
        path = self.folder / _SECRET_FILE
        unfinished = self.folder / f"{UNFINISHED_PREFIX}secret-{secrets.token_hex(8)}"
        with contextlib.suppress(FileExistsError):
            if not path.exists():
                unfinished.touch(mode=0o600)
                unfinished.write_bytes(secrets.token_bytes(_SECRET_BYTES))
                os.link(unfinished, path)
        unfinished.unlink(missing_ok=True)
        return path.read_bytes()


class Shelf:
    """The entries of one subtask, and its way to those of the other subtasks of its operator."""

    def __init__(
        self,
        cache: WarmCache,
        operator_folder: Path,
        task_index: int,
        *,
        gives_own: bool = False,
        writes_small: bool = True,
    ) -> None:
        self._cache = cache
        self._writes_small = writes_small
        #: The names of the entries that were put since; None where any may be given.
        self._given: set[str] | None = set() if gives_own else None
        self._operator_folder = operator_folder
        self._task_index = task_index
        self._own = self._folder_of(task_index)

    @property
    def folder(self) -> Path:
        return self._own

    def get(self, file: StateFile, start: int, end: int, *, is_checked: bool = False) -> pa.Table | None:
        """The rows of `file` with a key hash in `start..end`, or None; a whole file serves any part of it.

        With `is_checked` every byte is compared with what was written: for rows that are to be stored again.
        """
        epoch, writer = paths.writer_of(file.path)
        folders = [self._own] if writer in (None, self._task_index) else [self._folder_of(writer), self._own]
        for part in (None, (start, end)):
            name = _entry_name(file, part)
            if self._given is not None and name not in self._given:
                continue
            table = None if is_checked else self._cache.recall(name)
            if table is not None:
                return table
            for folder in folders:
                table = self._cache.load(folder / f"{epoch}-{name}{ENTRY_SUFFIX}", name, is_checked=is_checked)
                if table is not None:
                    return table
        return None

    def put(self, file: StateFile, table: pa.Table, part: tuple[int, int] | None = None) -> None:
        """Keep the rows of `file`, or those of the hashes `part`."""
        epoch, _ = paths.writer_of(file.path)
        name = _entry_name(file, part)
        if self._given is not None:
            self._given.add(name)
        self._cache.remember(name, table)
        if self._writes_small or table.nbytes > SMALL_BYTES:
            self._cache.store(self._own / f"{epoch}-{name}{ENTRY_SUFFIX}", table)

    def size_bytes(self) -> int:
        """What the entries of the subtask take."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self._own) as found:
            return sum(entry.stat().st_size for entry in found)
        return 0

    def retain(self, files: Collection[StateFile], *, epoch: int) -> None:
        """Remove what the checkpoint of `epoch`, which refers to `files`, needs no more.

        What a later epoch put there stays: it may be under way.
        """
        needed = {file.checksum.hex() for file in files}
        for path in dead_entries(self._own, needed, epoch=epoch, now_s=time.time()):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        self._cache.look_over()

    def clear(self) -> None:
        """Remove all entries: no epoch will ask for them."""
        self.retain((), epoch=paths.MAX_EPOCH)
        with contextlib.suppress(OSError):
            self._own.rmdir()

    def _folder_of(self, subtask: int | None) -> Path:
        return self._operator_folder.with_name(f"{self._operator_folder.name}-{subtask}")


def _held_bytes(table: pa.Table) -> int:
    return int(table.nbytes) + _TABLE_BYTES


def default_warm_cache() -> WarmCache | None:
    """The cache of this user and host; None where `ARROYO_STATE_CACHE` is `off` or the folder is not ours.

    One per process and setting.
    """
    folder = STATE_CACHE.path()
    max_bytes = int(os.environ.get(MAX_BYTES_VARIABLE, DEFAULT_MAX_BYTES))
    return None if folder is None else _default(folder, max_bytes, os.getpid())


@lru_cache(maxsize=4)
def _default(folder: Path, max_bytes: int, _pid: int) -> WarmCache | None:
    try:
        return WarmCache(folder, max_bytes=max_bytes)
    except (OSError, SetupError):
        if STATE_CACHE.is_chosen:
            raise
        return None


def _create(path: Path) -> FileIO:
    return open(path, "xb", buffering=0, opener=private_opener)


def _write_rows(file: FileIO, table: pa.Table) -> tuple[int, int]:
    """Write a table as a stream of Arrow; returns its length and its CRC. The file's position is then its end."""
    if table.nbytes <= BUFFERED_BYTES:
        buffer = pa.BufferOutputStream()
        with pa.ipc.new_stream(buffer, table.schema) as writer:
            writer.write_table(table)
        data = memoryview(buffer.getvalue())
        if file.write(data) != len(data):
            raise OSError(errno.ENOSPC, "no room for a cache entry")
        return len(data), zlib.crc32(data)
    with pa.OSFile(str(file.name), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data = memoryview(pa.memory_map(str(file.name), "r").read_buffer())
    file.seek(0, os.SEEK_END)
    return len(data), zlib.crc32(data)


def _entry_name(file: StateFile, part: tuple[int, int] | None) -> str:
    name = file.checksum.hex()
    return name if part is None else f"{name}-{part[0]:016x}-{part[1]:016x}"
