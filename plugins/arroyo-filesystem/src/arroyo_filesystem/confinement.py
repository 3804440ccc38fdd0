"""Which files a commit may move: those that the operator staged, to the names that follow from these.

Commit data are read from the checkpoint storage, and others may write there. Names are the same since the first
version, but for the id of the state, which names of before have not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from arroyo_core.api import TaskInfo
from arroyo_core.api.confined import check_local_file, check_local_folder, check_relative
from arroyo_core.errors import UnsafePathError
from arroyo_filesystem.compacted import COMPACTED_FOLDER
from arroyo_filesystem.location import Location
from arroyo_filesystem.manifests import MANIFEST_FOLDER
from arroyo_filesystem.staging import STAGING_FOLDER, StagedFile

#: Folders of many partition columns are long; no filesystem takes more.
MAX_NAME_LENGTH = 4096
_STAGED_NAME = re.compile(r"(?P<subtask>[0-9]+)-(?P<unique>[0-9a-f]{32})\.(?P<extension>[^/]+)")
#: A pattern of the config makes it, which may be another one now; what is random is in all of them.
_FINAL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.=,~%-]*")


def check_files(location: Location, files: Iterable[StagedFile], task_info: TaskInfo) -> None:
    """Raise `UnsafePathError` unless all files are the operator's own; before the first of them is moved."""
    # Not the id of the state: it follows from the checkpoint URL, which may be spelled otherwise since.
    own = re.compile(
        rf"{STAGING_FOLDER}/{re.escape(f'{task_info.job_id}.{task_info.operator_id}')}(\.[0-9a-z]+)?/[0-9]+"
    )
    for file in files:
        try:
            _check_names(file, own)
            if location.is_local:
                check_local_file(location.path, file.staged)
                check_local_folder(location.path, file.final)
        except UnsafePathError as error:
            raise UnsafePathError(
                f"commit data of operator {task_info.operator_id!r} would move a file that it did not stage: {error}. "
                f"Nothing in {location.url!r} was moved. Who can write to the checkpoint URL besides this job?"
            ) from None


def _check_names(file: StagedFile, own: re.Pattern[str]) -> None:
    for name in (file.staged, file.final):
        check_relative(name, max_length=MAX_NAME_LENGTH)
    folder, _, name = file.staged.rpartition("/")
    staged = _STAGED_NAME.fullmatch(name)
    if staged is None or not own.fullmatch(folder):
        raise UnsafePathError(f"{file.staged!r} is not in the operator's own staging folder")
    if not _is_name_of(file.final.rpartition("/")[2], staged):
        raise UnsafePathError(f"{file.final!r} is not the name of what is staged as {file.staged!r}")
    if file.final.partition("/")[0] in (STAGING_FOLDER, MANIFEST_FOLDER, COMPACTED_FOLDER):
        raise UnsafePathError(f"{file.final!r} is not a name of output")


def _is_name_of(final: str, staged: re.Match[str]) -> bool:
    ending = f".{staged['extension']}"
    name = final.removesuffix(ending)
    return final.endswith(ending) and bool(_FINAL_NAME.fullmatch(name)) and staged["unique"][:8] in name
