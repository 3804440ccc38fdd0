"""Files that become part of a table only with the epoch they belong to: the first phase.

Tasks write below `arroyo/{node}/{epoch}/` of the table's folder, under names that no two attempts share, and where the
log will refer to them. What is staged with the checkpoint is the list of them. `arroyo_delta.commit` is the second
phase. Names begin without an underscore, so that `vacuum` takes what nobody refers to, whoever left it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

import msgspec
import pyarrow as pa

from arroyo_core.api import TaskInfo
from arroyo_core.api.confined import check_relative
from arroyo_core.errors import Domain, RetryHint, StateError, UnsafePathError

FOLDER = "arroyo"
_NAME = re.compile(r"part-[0-9]{3,}-[0-9]+-[0-9a-f]{32}\.(?:parquet|arrow)")


class StagedFile(msgspec.Struct, frozen=True):
    """A closed file that waits for its commit; the path is relative to the folder of the table."""

    path: str
    rows: int
    size: int
    #: The values of the partition columns, in their order.
    partition: tuple[str | None, ...] = ()
    #: As JSON; empty for files of changes.
    statistics: str = ""


class StagedEpoch(msgspec.Struct, frozen=True):
    """What one subtask has staged."""

    #: The columns as an Arrow schema, with those that the table is partitioned by.
    schema: bytes
    partition_by: tuple[str, ...]
    files: tuple[StagedFile, ...]


class DamagedCommitError(StateError):
    """What a checkpoint has for a commit is not what a sink wrote; no retry helps."""

    domain = Domain.EXTERNAL
    retry = RetryHint.NO_RETRY


class LostFileError(StateError):
    """A file that was staged is gone; no retry brings it back."""

    domain = Domain.EXTERNAL
    retry = RetryHint.NO_RETRY


def node_folder(task: TaskInfo, state_id: str) -> str:
    """The folder of an operator: no other operator or job writes there, nor a fork of the job.

    Its name needs no escapes in the log.
    """
    whole = f"{task.job_id}\n{task.operator_id}\n{state_id}"
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", f"{task.job_id}.{task.operator_id}")[:80].strip("-")
    return f"{FOLDER}/{readable}-{hashlib.blake2b(whole.encode(), digest_size=8).hexdigest()}"


def encode_epoch(schema: pa.Schema, partition_by: Sequence[str], files: Sequence[StagedFile]) -> bytes:
    encoded = schema.serialize().to_pybytes()
    return msgspec.msgpack.encode(StagedEpoch(encoded, tuple(partition_by), tuple(files)))


def decode_epochs(staged: Mapping[int, bytes], folder: str) -> list[StagedEpoch]:
    """What all subtasks have staged, but for those without files.

    Raises `DamagedCommitError`, and `UnsafePathError` where a name is not in the operator's own `folder`: commit data
    are read from the checkpoint storage, and others may write there.
    """
    epochs = []
    for subtask in sorted(staged):
        if not staged[subtask]:
            continue
        try:
            epoch = msgspec.msgpack.decode(staged[subtask], type=StagedEpoch)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise DamagedCommitError(f"commit data are not a list of staged files: {error}") from error
        for file in epoch.files:
            _check_name(file.path, folder)
        if epoch.files:
            epochs.append(epoch)
    return epochs


def _check_name(path: str, folder: str) -> None:
    check_relative(path)
    above, _, name = path.rpartition("/")
    parent, _, epoch = above.rpartition("/")
    if parent != folder or not epoch.isdecimal() or not _NAME.fullmatch(name):
        raise UnsafePathError(
            f"commit data would make {path!r} part of the table, which this operator did not write. Nothing was "
            "committed. Who can write to the checkpoint URL besides this job?"
        )
