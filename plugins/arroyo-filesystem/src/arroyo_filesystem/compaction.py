"""Makes large files of small ones that are committed: `arroyo files compact`.

A round writes its files below `_arroyo_staging/compaction/`, then creates a record exclusively, which decides: of two
that compact at once, the second one finds the number taken, and plans again. What follows is done by whoever comes
first, also after a crash: the new files get their names, the record is complete, the replaced files are deleted.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, cast

from arroyo_core.api.confined import check_local_file
from arroyo_core.errors import ConfigError, DataError, naming_path
from arroyo_core.local_folders import make_closed_folder
from arroyo_core.state import exclusive_fault, get_storage_provider
from arroyo_filesystem.commit import move_files, put_whole
from arroyo_filesystem.compacted import Merge, Record, Records, encode_record, merged_name
from arroyo_filesystem.listing import file_of_info
from arroyo_filesystem.location import Location, make_folder, sync_folder
from arroyo_filesystem.manifests import read_manifests
from arroyo_filesystem.merged_files import can_merge, columns_of, merge_files
from arroyo_filesystem.object_stores import is_object_store
from arroyo_filesystem.partitions import longest_name
from arroyo_filesystem.staging import STAGING_FOLDER, StagedFile, StagedStream

COMPACTION_FOLDER = f"{STAGING_FOLDER}/compaction"
#: A round has files of so many bytes, and a crash loses no more work.
ROUND_BYTES = 2**30
#: How often somebody else may be faster, one time after the other.
ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file of the output that counts."""

    path: str
    rows: int
    size: int
    owner: str
    epoch: int

    @property
    def group(self) -> tuple[str, str, str]:
        """Files that may be written as one have the same: their writer, their folder, and what their names end with."""
        folder, _, name = self.path.rpartition("/")
        return self.owner, folder, name.rpartition(".")[2]


@dataclass(slots=True)
class Compacted:
    """What was done."""

    merged: int = 0
    files: int = 0
    bytes: int = 0

    def add(self, record: Record) -> None:
        self.files += len(record.merges)
        self.merged += sum(len(merge.replaces) for merge in record.merges)
        self.bytes += sum(merge.bytes for merge in record.merges)


class Compaction:
    """Compacts the output of `filesystem.sink` in one folder, beside jobs that write there."""

    def __init__(
        self, location: Location, options: Mapping[str, str], *, file_bytes: int, older_than_us: int, now_us: int
    ) -> None:
        """Files below half of `file_bytes` become files of about so many; those that are younger are left alone."""
        self._location = location
        self._options = options
        self._file_bytes = file_bytes
        self._before_us = now_us - older_than_us
        self._is_exclusive = False
        #: Files that cannot be written as one, and why: all others are compacted nevertheless.
        self._refused: dict[tuple[str, ...], DataError] = {}

    def plan(self) -> list[list[OutputFile]]:
        """Which files would be written as one."""
        return self._plan(Records.read(self._location))

    def run(self) -> Compacted:
        """Finish what was begun, then compact until nothing small is left.

        Raises `ConfigError` for unfit storage, and `DataError`, at the end, of files that are not what was written.
        """
        done, failures = Compacted(), 0
        while True:
            try:
                record = self._round()
            except FileNotFoundError:
                # Another compaction was faster.
                failures += 1
                if failures == ATTEMPTS:
                    raise
                continue
            if record is None:
                if self._refused:
                    raise self._problem(done)
                return done
            failures = 0
            done.add(record)

    def _problem(self, done: Compacted) -> DataError:
        first, *others = self._refused.values()
        more = f" (and {len(others)} more like it)" if others else ""
        return DataError(f"{first}{more}; of the other files {done.merged} became {done.files}")

    def _round(self) -> Record | None:
        """Compact some files; None where there is nothing left. Raises `FileNotFoundError` where somebody else did."""
        records = self._recover()
        groups = self._plan(records)
        if not groups:
            return None
        self._check_storage()
        record = self._write(records.last + 1, groups)
        if not record.merges:
            return None
        if not self._publish(record):
            raise FileNotFoundError(record.begun_path)
        self._finish(record)
        return record

    def _recover(self) -> Records:
        """Finish rounds that were decided and are not done, and delete what dead ones have left."""
        # Another compaction may decide one while these are finished: to pass it by would be to plan with its files.
        while (records := Records.read(self._location)).begun:
            for record in records.begun:
                self._finish(record)
        listing = self._listing()
        self._delete([path for record in records.complete for path in record.replaced if path in listing])
        self._sweep(records.last)
        return records

    def _listing(self) -> dict[str, int]:
        """All files, by their path in the folder, with the time of their last change; 0 where nobody knows."""
        self._location.fs.invalidate_cache()
        root = self._location.path.rstrip("/")
        found = self._location.fs.find(self._location.path, detail=True)
        files = (file_of_info(info) for info in found.values() if info["type"] == "file")
        return {file.path.removeprefix(root).lstrip("/"): file.modified_us for file in files}

    def _plan(self, records: Records) -> list[list[OutputFile]]:
        listing = self._listing()
        output = [
            OutputFile(file.path, file.rows, file.bytes, manifest.owner, manifest.epoch)
            for manifest in read_manifests(self._location)
            for file in manifest.files
        ]
        output += [OutputFile(each.path, each.rows, each.bytes, each.owner, each.epoch) for each in records.merges]
        replaced = records.replaced
        # Each of them once: a job that went back to an older epoch has another manifest in the place of one.
        there = {file.path: file for file in output if file.path not in replaced and file.path in listing}
        wanted = sorted(there.values(), key=lambda file: (file.group, file.epoch, file.path))
        plan: list[list[OutputFile]] = []
        for _, group in groupby(wanted, key=lambda file: file.group):
            plan += self._cut(list(group), listing)
        return plan

    def _cut(self, group: Sequence[OutputFile], listing: Mapping[str, int]) -> Iterator[list[OutputFile]]:
        """Runs of small neighbours: rows stay in the order of epochs."""
        run: list[OutputFile] = []
        size, former = 0, None
        for file in group:
            is_old = listing[file.path] <= self._before_us
            columns = self._columns(file) if is_old and file.size < self._file_bytes / 2 else None
            if run and (columns is None or columns != former or size >= self._file_bytes):
                yield from [run] if len(run) > 1 else []
                run, size = [], 0
            if columns is not None:
                run.append(file)
                size, former = size + file.size, columns
        yield from [run] if len(run) > 1 else []

    def _columns(self, file: OutputFile) -> Any:
        """As `columns_of`; None also for a file that cannot be read, which is told at the end."""
        if not can_merge(file.path):
            return None
        try:
            return columns_of(self._location, file.path)
        except DataError as error:
            self._refused[file.path,] = error
            return None

    def _write(self, number: int, groups: Sequence[Sequence[OutputFile]]) -> Record:
        """Stage the files of a round; none where all that is left is refused."""
        merges: list[Merge] = []
        for group in groups:
            paths = tuple(file.path for file in group)
            if paths in self._refused:
                continue
            try:
                merges.append(self._merge(number, group))
            except DataError as error:
                self._refused[paths] = error
            if sum(merge.bytes for merge in merges) >= ROUND_BYTES:
                break
        return Record(number=number, merges=tuple(merges))

    def _merge(self, number: int, group: Sequence[OutputFile]) -> Merge:
        first = group[0]
        folder, _, name = first.path.rpartition("/")
        extension = name.rpartition(".")[2]
        unique = uuid.uuid4().hex
        staged = f"{COMPACTION_FOLDER}/{number:08}-{unique}.{extension}"
        final = merged_name(name, unique, longest=longest_name(self._location, folder))
        if self._location.is_local:
            for file in group:
                check_local_file(self._location.path, file.path)
        stream = StagedStream(
            self._location, self._open(staged), staged=staged, final=f"{folder}/{final}" if folder else final
        )
        try:
            rows = merge_files(self._location, [file.path for file in group], stream.stream)
        except BaseException:
            stream.abort()
            raise
        expected = sum(file.rows for file in group)
        closed = stream.close(expected)
        if rows is not None and rows != expected:
            raise DataError(
                f"{len(group)} files from {first.path!r} on have {rows} rows, and their manifests say {expected}: they "
                "were changed; nothing was replaced"
            )
        return Merge(
            path=closed.final,
            rows=expected,
            bytes=closed.size,
            replaces=tuple(file.path for file in group),
            owner=first.owner,
            epoch=first.epoch,
            staged=staged,
        )

    def _open(self, name: str) -> BinaryIO:
        path = self._location.child(name)
        if self._location.is_local:
            folder = Path(path).parent
            make_folder(folder.parent)
            make_closed_folder(folder, Path(self._location.path))
            return Path(path).open("wb", buffering=2**20)
        if not is_object_store(self._location.fs):
            self._location.fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        return cast(BinaryIO, self._location.fs.open(path, "wb"))

    def _publish(self, record: Record) -> bool:
        """Create the record; False where another compaction was faster."""
        content, name = encode_record(record), record.begun_path
        if self._location.is_local:
            return self._link(content, name, draft=f"{COMPACTION_FOLDER}/{record.number:08}-{uuid.uuid4().hex}.begun")
        return get_storage_provider(self._location.url, self._options).put_if_absent(name, content)

    def _check_storage(self) -> None:
        """Raise `ConfigError` unless of two rounds with one number only one can be decided."""
        if self._is_exclusive:
            return
        if not self._location.is_local:
            provider = get_storage_provider(self._location.url, self._options)
            if fault := exclusive_fault(provider, folder=COMPACTION_FOLDER):
                raise ConfigError(
                    f"{provider.shown_url} cannot be compacted: {fault}. Two compactions at once could both replace "
                    "the same files: compact on local disks, S3, or another store with an exclusive create"
                )
        self._is_exclusive = True

    def _link(self, content: bytes, name: str, *, draft: str) -> bool:
        target, source = Path(self._location.child(name)), Path(self._location.child(draft))
        make_folder(target.parent)
        with naming_path(str(source)), source.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(source, target)
        except FileExistsError:
            return False
        finally:
            source.unlink(missing_ok=True)
        sync_folder(str(target.parent))
        return True

    def _finish(self, record: Record) -> None:
        """What follows from a record; may be repeated, also by several at once."""
        staged = [StagedFile(merge.staged, merge.path, merge.rows, merge.bytes) for merge in record.merges]
        move_files(self._location, staged)
        draft = f"{COMPACTION_FOLDER}/{record.number:08}-{uuid.uuid4().hex}.json"
        put_whole(self._location, record.complete_path, encode_record(record), draft=draft)
        self._delete(list(record.replaced))
        self._sweep(record.number)

    def _delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            if self._location.is_local:
                check_local_file(self._location.path, path)
            with suppress(FileNotFoundError):
                self._location.fs.rm_file(self._location.child(path))

    def _sweep(self, last: int) -> None:
        """Delete what was staged up to a round: all that counts of it has its name."""
        folder = self._location.child(COMPACTION_FOLDER)
        self._location.fs.invalidate_cache()
        try:
            found = self._location.fs.ls(folder, detail=False)
        except FileNotFoundError:
            return
        for path in found:
            name = str(path).rpartition("/")[2]
            number = name.partition("-")[0]
            if number.isdecimal() and int(number) <= last:
                with suppress(FileNotFoundError):
                    self._location.fs.rm_file(self._location.child(f"{COMPACTION_FOLDER}/{name}"))
        if self._location.is_local:
            for each in (folder, self._location.child(STAGING_FOLDER)):
                with suppress(OSError):
                    Path(each).rmdir()
