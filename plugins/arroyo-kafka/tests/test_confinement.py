"""Who can write to the checkpoint storage can write commit data; it must not move or send anything elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pyarrow as pa
import pytest
from arroyo_kafka.staged_files import LetterFolder, StagedFile
from arroyo_kafka.staging import Staged, StagedEpoch, StagedWriter

from arroyo_core.api import CommitToken, OperatorContext, TaskInfo
from arroyo_core.errors import RetryHint, UnsafePathError, retry_hint

TASK = TaskInfo(job_id="job", operator_id="orders", operator_name="kafka.source", task_index=0, parallelism=1)
SCHEMA = pa.schema([("value", pa.large_binary())])


@pytest.fixture
def letters(tmp_path: Path) -> LetterFolder:
    ctx = SimpleNamespace(
        task_info=TASK, token=CommitToken("00000000000000a1", 1, 1), table_manager=SimpleNamespace(state_id="a1b2")
    )
    return LetterFolder(str(tmp_path / "dead"), cast(OperatorContext, ctx))


def stage(letters: LetterFolder) -> StagedFile:
    stream, file = letters.begin("parquet")
    stream.write(b"letters")
    letters.finish(stream)
    return file


FORGERIES: dict[str, Callable[[StagedFile], dict[str, str]]] = {
    "a staged file above the folder": lambda file: {"staged": "../victim.txt"},
    "a final name above the folder": lambda file: {"final": "../taken.txt"},
    "a final name in a folder": lambda file: {"final": f"x/{file.final}"},
    "a final name of something else": lambda file: {"final": "index.html"},
    "another operator's file": lambda file: {"staged": file.staged.replace("job.orders.", "job.other.")},
    "another protocol": lambda file: {"final": f"s3://bucket/{file.final}"},
}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES)
def test_forged_names_of_dead_letters_move_nothing(
    tmp_path: Path, letters: LetterFolder, forgery: Callable[[StagedFile], dict[str, Any]]
) -> None:
    honest = stage(letters)
    forged = msgspec.structs.replace(honest, **forgery(honest))
    source = tmp_path / "dead" / forged.staged
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_bytes(b"of somebody else")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(UnsafePathError) as raised:
        letters.commit([honest, forged])
    assert retry_hint(raised.value) is RetryHint.NO_RETRY
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_dead_letters_that_are_a_link_are_not_moved(tmp_path: Path, letters: LetterFolder) -> None:
    file = stage(letters)
    (tmp_path / "dead" / file.staged).unlink()
    (tmp_path / "dead" / file.staged).symlink_to(tmp_path)
    with pytest.raises(UnsafePathError, match="not a regular file"):
        letters.commit([file])


def test_dead_letters_of_the_operator_are_committed(tmp_path: Path, letters: LetterFolder) -> None:
    file = stage(letters)
    letters.commit([file])
    letters.commit([file])
    assert (tmp_path / "dead" / file.final).read_bytes() == b"letters"


@pytest.mark.parametrize("forged", ["secrets", ""])
def test_staged_messages_are_for_the_topic_of_the_sink_alone(forged: str) -> None:
    streams = {}
    for subtask, topic in enumerate(["orders", forged]):
        writer = StagedWriter(SCHEMA, Staged(topic=topic))
        writer.write(pa.RecordBatch.from_pydict({"value": [b"x"]}, schema=SCHEMA))
        streams[subtask] = writer.close()
    StagedEpoch({0: streams[0]}).check_topic("orders")
    with pytest.raises(UnsafePathError, match="'orders'") as raised:
        StagedEpoch(streams).check_topic("orders")
    assert retry_hint(raised.value) is RetryHint.NO_RETRY
