"""What becomes of bad messages: an error, a count, or a letter in a file that is committed with the epoch."""

from __future__ import annotations

import contextlib
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from arroyo_core.api import SourceContext
from arroyo_core.api.dead_letters import PROVENANCE, make_dead_letters
from arroyo_core.api.registry import Origin
from arroyo_core.api.visible import visible
from arroyo_core.errors import DataError
from arroyo_kafka.metadata import MetadataColumns
from arroyo_kafka.partitions import Partition
from arroyo_kafka.source_settings import BadData
from arroyo_kafka.staged_files import LetterFolder, StagedFile

if TYPE_CHECKING:
    from confluent_kafka import Message

#: How much of a bad message an error shows.
SHOWN_CHARACTERS = 120
#: Letters are written when there are so many, or so many bytes of them.
WRITTEN_LETTERS = 10_000
WRITTEN_BYTES = 8 << 20
COUNTER = "bad_rows"

_PLACE = MetadataColumns({part: part for part in ("topic", "partition", "offset", "timestamp", "key", "headers")})
#: The bytes of the message, and all that is known of it.
LETTERS = pa.schema([*_PLACE.fields, pa.field("value", pa.binary())])


class BadMessages:
    """Applies the policy of a source to its bad messages, for one subtask and one epoch."""

    def __init__(self, policy: BadData, folder: str | None, ctx: SourceContext) -> None:
        self._policy = policy
        self._ctx = ctx
        self._folder = LetterFolder(folder, ctx) if folder is not None else None
        self._count = 0
        self._held: list[Message] = []
        self._errors: list[DataError] = []
        self._bytes = 0
        self._file: StagedFile | None = None
        self._stream: BinaryIO | None = None
        self._writer: pq.ParquetWriter | None = None

    def add(self, message: Message, error: str) -> None:
        """Take one bad message; raises `DataError` where the policy is to fail."""
        if self._policy is BadData.FAIL:
            raise DataError(describe_bad(message, error))
        self._count += 1
        self._ctx.count(COUNTER)
        if self._policy is BadData.DEAD_LETTER:
            self._hold(message, DataError(error))
        elif self._count == 1:
            # One example an epoch; the counter tells how many.
            self._ctx.warn(f"dropped a bad message: {describe_bad(message, error)}")

    def close(self) -> StagedFile | None:
        """The file of this epoch, if there is one."""
        self._write()
        if self._writer is None or self._stream is None or self._folder is None:
            return None
        self._writer.close()
        self._folder.finish(self._stream)
        self._writer = None
        return self._file

    def abort(self) -> None:
        """Give up what was staged."""
        if self._stream is not None and self._folder is not None and self._file is not None:
            if self._writer is not None:
                with contextlib.suppress(Exception):
                    self._writer.close()
            self._stream.close()
            self._folder.discard(self._file)

    def _hold(self, message: Message, error: DataError) -> None:
        self._held.append(message)
        self._errors.append(error)
        self._bytes += len(message.value() or b"")
        if len(self._held) >= WRITTEN_LETTERS or self._bytes >= WRITTEN_BYTES:
            self._write()

    def _write(self) -> None:
        if not self._held:
            return
        if self._writer is None:
            if self._folder is None:
                raise AssertionError("a policy of dead letters has a folder")
            self._stream, self._file = self._folder.begin("parquet")
            self._writer = pq.ParquetWriter(self._stream, pa.schema([*LETTERS, *PROVENANCE]), compression="zstd")
        values = pa.array([message.value() for message in self._held], pa.binary())
        rows = pa.RecordBatch.from_arrays([*_PLACE.build(self._held), values], schema=LETTERS)
        places = [describe_place(message) for message in self._held]
        self._writer.write_batch(make_dead_letters(rows, self._errors, self._ctx, plugin=_plugin(), positions=places))
        self._held, self._errors, self._bytes = [], [], 0


def describe_place(message: Message) -> str:
    """`orders[3]@17`: topic, partition and offset."""
    return f"{Partition(message.topic() or '', message.partition() or 0)}@{message.offset()}"


def describe_bad(message: Message, error: str) -> str:
    """Where a bad message is, what is wrong, and its value, or how it begins."""
    return f"{describe_place(message)}: {error}: {_shown(message.value() or b'')}"


@cache
def _plugin() -> Origin:
    return Origin("arroyo-kafka", version("arroyo-kafka"))


def _shown(value: bytes) -> str:
    text = visible(value.decode("utf-8", errors="backslashreplace"), is_one_line=True)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}... ({len(value)} bytes)"
