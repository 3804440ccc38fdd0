"""What a format is: the contract between formats and connectors.

A connector moves bytes, and says where they came from. A format knows what the bytes mean. Connectors find formats by
name (`arroyo_formats.find_format`), so a format of another distribution (hook `arroyo_format`) works in all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf.message import Message

from arroyo_core.errors import ConfigError

if TYPE_CHECKING:
    from arroyo_formats.files import FileFormat

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BadMessage:
    """A message that cannot be read: its number among those that were given, and why, on one line."""

    index: int
    error: str


@dataclass(frozen=True, slots=True)
class Decoded:
    """The rows of some messages, in the order of the messages."""

    batch: pa.RecordBatch
    #: For each row the number of the message it came from; None where row i is of message i.
    origins: Indices | None = None
    bad: Sequence[BadMessage] = ()


@dataclass(frozen=True, slots=True)
class Encoded:
    """The messages of some rows, in the order of the rows."""

    #: `large_binary`; null for a row that is deleted, where the format can say so.
    messages: pa.Array
    #: For each message the number of the row it was made of; None where message i is of row i.
    origins: Indices | None = None


class MessageReader(ABC):
    """Reads messages; one instance serves one subtask, in one thread."""

    #: The columns of all batches, with `_updating_meta` last where the messages are changes.
    schema: pa.Schema

    @abstractmethod
    def read(self, messages: Sequence[bytes]) -> Decoded:
        """The rows of the messages. A message that cannot be read is among `bad`, and harms no other.

        The cost is in proportion to the messages, and what bad ones add to the number of the bad ones. Raises
        `ExternalError` where something outside is missing for a while, such as a schema registry.
        """


class MessageWriter(ABC):
    """Writes rows as messages; one instance serves one subtask, in one thread."""

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> Encoded:
        """One message for each row; a format of changes may make one of a row taken back and its successor.

        Raises `DataError` for a value that the format cannot hold, `ExternalError` as above.
        """


class Format(ABC):
    """One way to write rows. Subclasses override what makes sense for them.

    Settings are a protobuf message of the format's own. In YAML they stand beside its name: `format: {name: csv,
    delimiter: ";"}`. All methods are given resolved settings, with the defaults of their fields.
    """

    #: As it is written in YAML: `json`.
    name: ClassVar[str]
    settings_type: ClassVar[type[Message]]
    #: Whether messages are changes: the reader's schema is updating, and the writer takes an updating stream.
    is_updating: ClassVar[bool] = False
    #: What it can do with files; None where files make no sense.
    files: ClassVar[FileFormat | None] = None

    def for_topic(self, settings: Any, topic: str, part: str) -> Any:
        """The settings for messages of a topic, where they name nothing else: the subject in a schema registry.

        Connectors with topics call it before `resolve`, once. `part` is `value` or `key`. Must not change what it is
        given: return a copy.
        """
        return settings

    def resolve(self, settings: Any) -> Any:
        """The settings as executors need them, with the content of files that only the driver has.

        Called on the driver, when the pipeline is planned. Must not change what it is given: return a copy. Given what
        it returned before, also elsewhere, it returns the same. Raises `ConfigError` naming the field within the
        settings.
        """
        return settings

    def schema(self, settings: Any, declared: pa.Schema | None) -> pa.Schema:
        """The columns of the rows: those declared in the pipeline, or what the settings say. Without `_updating_meta`.

        Called on the driver when the pipeline is planned. Raises `ConfigError` where neither tells the columns, or
        where the format cannot hold one of them.
        """
        if declared is None:
            raise ConfigError(f"{self.name} messages do not say what columns they have: declare them", field="schema")
        return declared

    def reader(self, settings: Any, schema: pa.Schema) -> MessageReader:
        """A reader of messages, of the columns of `schema`; raises `ConfigError` where messages cannot be read."""
        raise ConfigError(f"{self.name} cannot be read from messages", field="format", value=self.name)

    def writer(self, settings: Any, schema: pa.Schema) -> MessageWriter:
        """A writer of rows of these columns; raises `ConfigError` naming a column that it cannot hold.

        Has no effect on the outside before the first `write`: writers are also made to check a plan. A format of
        changes is given `_updating_meta` among the columns.
        """
        raise ConfigError(f"{self.name} cannot be written as messages", field="format", value=self.name)
