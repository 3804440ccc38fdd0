"""The one place that builds and reads paths; all are relative to the checkpoint URL.

    {job_id}/generations/{generation}.claim
    {job_id}/generations/{generation}.stop
    {job_id}/generations/{generation}.rescale
    {job_id}/generations/{generation}.status
    {job_id}/generations/{incarnation}.incarnation
    {job_id}/heartbeats/{generation}-{wave}-{subtask_index}.json
    {job_id}/checkpoints/{epoch}/operator-{operator_id}-{subtask_index}.metadata
    {job_id}/checkpoints/{epoch}/table-{operator_id}-{table}-{subtask_index}-{nonce}.parquet
    {job_id}/checkpoints/{epoch}/commit-{operator_id}-{table}-{subtask_index}-{nonce}.staged
    {job_id}/checkpoints/{epoch}/checkpoint.metadata
    {job_id}/checkpoints/{epoch}/committed.marker
    {job_id}/checkpoints/{epoch}/events-{generation}.jsonl
    {job_id}/udfs/{sha256}.pickle
    {job_id}/damaged/{generation}/repair.json
    {job_id}/damaged/{generation}/checkpoints/{epoch}/...

Ids are percent-encoded, so that none can add a level or leave its folder. The nonce keeps two
attempts at one epoch apart.
"""

from __future__ import annotations

import re
import secrets
from functools import lru_cache
from urllib.parse import quote, unquote

from arroyo_core.api.confined import check_relative
from arroyo_core.errors import UnsafePathError

CHECKPOINT_FILE = "checkpoint.metadata"
COMMITTED_FILE = "committed.marker"

#: A local file that is being written, or was when its writer died, has this prefix.
UNFINISHED_PREFIX = ".unfinished-"

MAX_EPOCH = 2**32 - 1

_EPOCH_FOLDER = re.compile(r"[1-9][0-9]{0,9}")
_CLAIM = re.compile(r"([1-9][0-9]{0,18})\.claim")
_STOP = re.compile(r"([1-9][0-9]{0,18})\.stop")
_RESCALE = re.compile(r"([1-9][0-9]{0,18})\.rescale")
_STATUS = re.compile(r"([1-9][0-9]{0,18})\.status")
_INCARNATION = re.compile(r"([0-9a-f]{1,64})\.incarnation")
_TABLE_FILE = re.compile(r"(?:.*/)?([1-9][0-9]{0,9})/table-[^/]*-([0-9]{1,9})-[0-9a-f]+\.parquet")
_HEARTBEAT = re.compile(r"([0-9]{1,19})-[0-9]+-[0-9]+\.json")


@lru_cache(maxsize=4096)
def encode_id(text: str) -> str:
    """An id as one path component: letters, digits and `_.-~` stay, all else is percent-encoded."""
    if not text:
        raise UnsafePathError("an empty id cannot be part of a path")
    return text.replace(".", "%2E") if text in (".", "..") else quote(text, safe="")


def decode_id(component: str) -> str:
    return unquote(component)


def job_folder(job_id: str) -> str:
    return encode_id(job_id)


def generations_folder(job_id: str) -> str:
    return f"{job_folder(job_id)}/generations"


def generation_claim(job_id: str, generation: int) -> str:
    return f"{generations_folder(job_id)}/{generation}.claim"


def stop_request(job_id: str, generation: int) -> str:
    """Holds the way in which the driver of a generation is asked to stop."""
    return f"{generations_folder(job_id)}/{generation}.stop"


def rescale_request(job_id: str, generation: int) -> str:
    """Holds the parallelism that the driver of a generation is asked for."""
    return f"{generations_folder(job_id)}/{generation}.rescale"


def driver_status(job_id: str, generation: int) -> str:
    """Holds what the driver of a generation last said of itself."""
    return f"{generations_folder(job_id)}/{generation}.status"


def incarnation_marker(job_id: str, incarnation: str) -> str:
    """Is there once the incarnation has published a checkpoint."""
    return f"{generations_folder(job_id)}/{incarnation}.incarnation"


def heartbeats_folder(job_id: str) -> str:
    return f"{job_folder(job_id)}/heartbeats"


def heartbeat(job_id: str, generation: int, wave: int, subtask_index: int) -> str:
    """Where a task is that runs for long; gone when it ends."""
    return f"{heartbeats_folder(job_id)}/{generation}-{wave}-{subtask_index}.json"


def pickled_udf(job_id: str, sha256: str) -> str:
    """A function that the driver's program sent; named by its content."""
    return f"{job_folder(job_id)}/udfs/{sha256}.pickle"


def damaged_folder(job_id: str, generation: int) -> str:
    """Where a repair keeps what it moved aside."""
    return f"{job_folder(job_id)}/damaged/{generation}"


def damaged_copy(job_id: str, generation: int, path: str) -> str:
    """The name that a file of the job has there."""
    return f"{damaged_folder(job_id, generation)}/{path.removeprefix(job_folder(job_id) + '/')}"


def checkpoints_folder(job_id: str) -> str:
    return f"{job_folder(job_id)}/checkpoints"


def epoch_folder(job_id: str, epoch: int) -> str:
    return f"{checkpoints_folder(job_id)}/{epoch}"


def checkpoint_metadata(job_id: str, epoch: int) -> str:
    return f"{epoch_folder(job_id, epoch)}/{CHECKPOINT_FILE}"


def committed_marker(job_id: str, epoch: int) -> str:
    return f"{epoch_folder(job_id, epoch)}/{COMMITTED_FILE}"


def event_log(job_id: str, epoch: int, generation: int) -> str:
    """What the driver of a generation went through until it had committed an epoch."""
    return f"{epoch_folder(job_id, epoch)}/events-{generation}.jsonl"


def operator_metadata(job_id: str, epoch: int, operator_id: str, subtask_index: int) -> str:
    return f"{epoch_folder(job_id, epoch)}/operator-{encode_id(operator_id)}-{subtask_index}.metadata"


def table_file(job_id: str, epoch: int, operator_id: str, table: str, subtask_index: int) -> str:
    """A name for a new data file; two calls never give the same."""
    names = f"table-{encode_id(operator_id)}-{encode_id(table)}-{subtask_index}-{secrets.token_hex(8)}"
    return f"{epoch_folder(job_id, epoch)}/{names}.parquet"


def staged_file(job_id: str, epoch: int, operator_id: str, table: str, subtask_index: int) -> str:
    """A name for a new file of commit data; two calls never give the same."""
    names = f"commit-{encode_id(operator_id)}-{encode_id(table)}-{subtask_index}-{secrets.token_hex(8)}"
    return f"{epoch_folder(job_id, epoch)}/{names}.staged"


def is_data(path: str) -> bool:
    """Whether this is a file that a checkpoint refers to, or that nobody needs."""
    return path.endswith((".parquet", ".staged"))


def epoch_of(job_id: str, path: str) -> int | None:
    """The epoch whose folder holds `path`; None for a path outside the job's checkpoints."""
    prefix = checkpoints_folder(job_id) + "/"
    if not path.startswith(prefix):
        return None
    folder, slash, _ = path[len(prefix) :].partition("/")
    return int(folder) if slash and _EPOCH_FOLDER.fullmatch(folder) else None


def writer_of(path: str) -> tuple[int, int | None]:
    """The epoch and the subtask that wrote a data file, as its path says; 0 and None for any other path."""
    match = _TABLE_FILE.fullmatch(path)
    return (int(match[1]), int(match[2])) if match else (0, None)


def is_unfinished(path: str) -> bool:
    """Whether this is what a writer of local files left behind."""
    return path.rpartition("/")[2].startswith(UNFINISHED_PREFIX)


def generation_of(job_id: str, path: str) -> int | None:
    """The generation that a path claims; None for any other path."""
    return _number(_match(_CLAIM, job_id, path))


def stopped_generation_of(job_id: str, path: str) -> int | None:
    """The generation that a path asks to stop; None for any other path."""
    return _number(_match(_STOP, job_id, path))


def rescaled_generation_of(job_id: str, path: str) -> int | None:
    """The generation that a path asks for another parallelism; None for any other path."""
    return _number(_match(_RESCALE, job_id, path))


def described_generation_of(job_id: str, path: str) -> int | None:
    """The generation whose driver left a status; None for any other path."""
    return _number(_match(_STATUS, job_id, path))


def incarnation_of(job_id: str, path: str) -> str | None:
    """The incarnation that a path is the marker of; None for any other path."""
    return _match(_INCARNATION, job_id, path)


def beating_generation_of(job_id: str, path: str) -> int | None:
    """The generation of the driver whose task left a heartbeat; None for any other path."""
    return _number(_match(_HEARTBEAT, job_id, path, folder=heartbeats_folder(job_id)))


def _match(pattern: re.Pattern[str], job_id: str, path: str, *, folder: str | None = None) -> str | None:
    prefix = (folder or generations_folder(job_id)) + "/"
    match = pattern.fullmatch(path[len(prefix) :]) if path.startswith(prefix) else None
    return match.group(1) if match else None


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def check_reference(job_id: str, path: str) -> str:
    """Return `path`, or raise if metadata of `job_id` must not refer to it."""
    check_relative(path)
    if not path.startswith(checkpoints_folder(job_id) + "/"):
        raise UnsafePathError(
            f"path {path[:200]!r} in the metadata of job {job_id!r} lies outside the job's checkpoints"
        )
    return path
