"""Commits an epoch: its files and the marker, in one commit to the catalog, once.

pyiceberg repeats a commit that met another one by itself, without looking whether the marker is there meanwhile: two
drivers would both add the same files. So its transaction only says what is to change. The commit to the catalog is made
here, once, and is refused if the branch has moved since the marker was read. Then everything begins again, with the
marker. Nor are files deleted unless the catalog has said that it refused them, and they are not in the table.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from arroyo_core.api import OperatorContext
from arroyo_core.errors import ConfigError, DataError, ExternalError
from arroyo_iceberg.catalog import translated
from arroyo_iceberg.markers import LostMarkerError, Marker, MarkerName, is_committed
from arroyo_iceberg.merging import replace_rows
from arroyo_iceberg.sink_settings import SinkSettings
from arroyo_iceberg.staging import (
    FileNames,
    LostFileError,
    Staged,
    StagedFile,
    check_paths,
    decode_staged,
    restore_file,
)
from arroyo_iceberg.sweeping import delete_files, sweep_epoch

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update.snapshot import _SnapshotProducer

#: How often other writers of the table may be faster.
ATTEMPTS = 20
#: How long to wait after the first of them, and at most.
WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.05, 2.0
MAIN = "main"
_MERGE_MANIFESTS = "commit.manifest-merge.enabled"


@dataclass(slots=True)
class _Attempt:
    """Files that one attempt has written, and that are garbage if it is refused."""

    metadata_files: list[str] = field(default_factory=list)
    data_files: list[str] = field(default_factory=list)


class Commit:
    """The commit of one epoch."""

    def __init__(
        self,
        settings: SinkSettings,
        ctx: OperatorContext,
        parts: Mapping[int, bytes],
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings = settings
        self._ctx = ctx
        self._token = ctx.token
        self._staged: Sequence[Staged] = decode_staged(parts)
        self._name = MarkerName(ctx.token, ctx.task_info)
        self._names = FileNames(ctx.token.incarnation, ctx.task_info)
        self._sleep = sleep

    def run(self) -> None:
        """Commit, if it is not done. Raises `FencedError`, `ExternalError`."""
        if not any(staged.files or staged.deleted for staged in self._staged):
            return
        wait = WAIT_SECONDS
        for _ in range(ATTEMPTS):
            table = self._settings.catalog.load(self._settings.table, doing="commit to")
            if self._is_done(table) or self._try(table):
                self._sweep(table)
                return
            self._ctx.count("commit_conflicts")
            self._sleep(wait * random.uniform(0.5, 1.5))
            wait = min(wait * 2, LONGEST_WAIT_SECONDS)
        raise ExternalError(
            f"cannot commit epoch {self._token.epoch} to table {self._settings.table}: other writers were faster "
            f"{ATTEMPTS} times"
        )

    def _is_done(self, table: Table) -> bool:
        """Whether the epoch is in the table. Raises `FencedError`, and errors for what must not be committed."""
        place = f"table {self._settings.table}"
        metadata = table.metadata
        if any(staged.table_id != str(metadata.table_uuid) for staged in self._staged):
            raise LostMarkerError(
                f"{place} is another one than when epoch {self._token.epoch} was staged: it was dropped and made "
                "again. Give the node another id to go on with the new one; the rows of that epoch are not in it"
            )
        marker = self._name.read(metadata)
        if marker is None and any(staged.has_earlier for staged in self._staged):
            raise LostMarkerError(
                f"{place} has lost the marker of this sink, its property {self._name.property!r}: whether epoch "
                f"{self._token.epoch} is in the table cannot be known. Set the property again, from older metadata of "
                'the table, such as {"generation":1,"epoch":7,"base":0} if epoch 7 was the last one'
            )
        return is_committed(marker, self._token, place=place)

    def _try(self, table: Table) -> bool:
        """One attempt; whether it was made. False where another commit was faster."""
        from pyiceberg.exceptions import CommitFailedException, ValidationException

        files = [file for staged in self._staged for file in staged.files]
        check_paths(table, files, self._names)
        self._check_files(table)
        attempt = _Attempt()
        doing = f"cannot commit epoch {self._token.epoch} to table {self._settings.table}"
        try:
            with translated(doing):
                transaction = self._prepare(table, files, attempt)
        except (CommitFailedException, ValidationException) as error:
            # Said before the catalog was asked: the metadata do not hold what the files need.
            delete_files(table, [*attempt.metadata_files, *attempt.data_files])
            raise DataError(f"{doing}: {error}") from error
        try:
            with translated(doing):
                self._send(table, transaction)
        except CommitFailedException:
            # A proxy may have sent the request twice, and heard of the second only: look before anything is deleted.
            now = self._settings.catalog.load(self._settings.table, doing="commit to")
            if self._is_done(now):
                return True
            delete_files(table, [*attempt.metadata_files, *attempt.data_files])
            return False
        self._ctx.count("committed_files", len(files))
        return True

    def _check_files(self, table: Table) -> None:
        """Raise `LostFileError` for a file that is gone: who deletes orphans may take what waits for long.

        What this driver's own tasks have just written is there.
        """
        waiting = [staged for staged in self._staged if staged.generation != self._token.generation]
        for file in (file for staged in waiting for file in staged.files):
            with translated(f"cannot look for {file.path}"):
                is_there = table.io.new_input(file.path).exists()
            if not is_there:
                raise LostFileError(
                    f"cannot commit epoch {self._token.epoch} to table {self._settings.table}: {file.path} with "
                    f"{file.rows} rows was staged, and is gone. Were orphans deleted that were too young?"
                )

    def _send(self, table: Table, transaction: Transaction) -> None:
        from pyiceberg.table.update import AssertTableUUID

        same_table = AssertTableUUID(uuid=table.metadata.table_uuid)
        table._do_commit(transaction._updates, (*transaction._requirements, same_table))

    def _prepare(self, table: Table, files: Sequence[StagedFile], attempt: _Attempt) -> Transaction:
        """A transaction with the files, the marker, and what becomes of older rows; not committed."""
        metadata = table.metadata
        self._check_branch(metadata)
        marker = Marker(self._token.generation, self._token.epoch, self._base(metadata))
        transaction = table.transaction()
        self._begin_branch(transaction, attempt)
        replacement = replace_rows(
            table,
            transaction.table_metadata.snapshot_by_name(self._settings.branch),
            self._settings,
            files,
            [staged.deleted for staged in self._staged if staged.deleted],
            base=marker.base,
            name=lambda: self._names.rewritten(self._token.epoch),
            written=attempt.data_files,
        )
        by_spec: dict[int, list[DataFile]] = {}
        for staged in files:
            by_spec.setdefault(staged.spec_id, []).append(restore_file(staged, metadata))
        for file in replacement.added:
            by_spec.setdefault(file.spec_id, []).append(file)
        removed = list(replacement.removed)
        for spec_id, added in sorted(by_spec.items()) or [(metadata.default_spec_id, [])]:
            # A manifest has files of one partitioning, and the library takes the table's present one. Another one may
            # be the present one since the files were staged.
            table.metadata = metadata.model_copy(update={"default_spec_id": spec_id})
            update = transaction.update_snapshot(self._name.summary(marker), branch=self._settings.branch)
            producer: _SnapshotProducer[Any] = (
                update.overwrite() if removed else update.merge_append() if _merges(metadata) else update.fast_append()
            )
            if removed and replacement.where is not None:
                producer.delete_by_predicate(replacement.where)
            for old in removed:
                producer.delete_data_file(old)
            for new in added:
                producer.append_data_file(new)
            removed = []
            try:
                producer.commit()
            finally:
                attempt.metadata_files += [*producer._written_manifests, *producer._written_manifest_lists]
        transaction.set_properties(self._name.properties(marker))
        return transaction

    def _base(self, metadata: TableMetadata) -> int:
        """The sequence number before the first commit of this sink."""
        earlier = self._name.read(metadata)
        if earlier is not None:
            return earlier.base
        # Tables of version 1 have none.
        return int(getattr(metadata, "last_sequence_number", 0))

    def _begin_branch(self, transaction: Transaction, attempt: _Attempt) -> None:
        """A branch that is not there begins with what the main branch has; the library would begin it empty."""
        branch = self._settings.branch
        if branch == MAIN or branch in transaction.table_metadata.refs:
            return
        if transaction.table_metadata.current_snapshot_id is None:
            # Of a table without snapshots only the main branch can be written: it gets one without rows.
            empty = transaction.update_snapshot().fast_append()
            empty.commit()
            attempt.metadata_files += [*empty._written_manifests, *empty._written_manifest_lists]
        head = transaction.table_metadata.current_snapshot_id
        assert head is not None, "the main branch has a snapshot now"
        transaction._apply(*transaction._set_ref_snapshot(head, branch, "branch"))

    def _check_branch(self, metadata: TableMetadata) -> None:
        from pyiceberg.table.refs import SnapshotRefType

        ref = metadata.refs.get(self._settings.branch)
        if ref is not None and ref.snapshot_ref_type != SnapshotRefType.BRANCH:
            raise ConfigError(
                f"{self._settings.branch!r} is a tag of table {self._settings.table}, and cannot be written to",
                field="branch",
                value=self._settings.branch,
            )

    def _sweep(self, table: Table) -> None:
        """Delete what attempts of this epoch that did not count have left; another time where the storage fails."""
        files = {file.path for staged in self._staged for file in staged.files}
        with contextlib.suppress(OSError):
            sweep_epoch(table, self._names.epoch_folder(self._token.epoch), files)


def _merges(metadata: TableMetadata) -> bool:
    """Whether small manifests are joined; else there would be one more with each epoch. As other writers have it."""
    return metadata.properties.get(_MERGE_MANIFESTS, "true").lower() != "false"
