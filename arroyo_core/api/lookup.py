"""Tables that another distribution brings, for operators that look rows up in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import TYPE_CHECKING, ClassVar, Generic

import pyarrow as pa
from google.protobuf.message import Message

from arroyo_core.api.constructor import ConfigT

if TYPE_CHECKING:
    from arroyo_core.api.registry import Registry


class LookupTable(ABC):
    """A table that is small enough to be read as a whole, such as a file or a compacted topic.

    Whoever looks rows up reads it, keeps it by `cache_key`, and reads it again when it is too old. A kind of table that
    is too large for that could be asked by key, in batches, by a method `find(keys)` beside `read`; there is none yet.
    """

    @abstractmethod
    def name(self) -> str:
        """The table as plans and errors name it: a path, a topic. Without secrets."""

    @abstractmethod
    def cache_key(self) -> Hashable:
        """The same for tables that have the same rows: what they are read from, and how. Never shown."""

    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns.

        Called on the driver to plan, and in tasks before rows are looked up; not more than once in the time that a
        table is kept. Raises `ConfigError` naming the field of the lookup's own config, `ExternalError` in an outage.
        """

    @abstractmethod
    def read(self, schema: pa.Schema, max_bytes: int) -> pa.Table:
        """All rows as they are now. `schema` is what `schema()` was when the pipeline was planned, in plain types.

        Called in tasks, by one thread at a time. Raises `DataError` for a table that is larger than `max_bytes`, has
        other columns now, or has rows that cannot be read; `ExternalError` in an outage.
        """


class LookupConstructor(ABC, Generic[ConfigT]):
    """Makes a table from a protobuf config, as an `OperatorConstructor` makes an operator.

    Importing the constructor must be cheap: client libraries are imported in `with_config` or later.
    """

    config_type: ClassVar[type[Message]]

    def resolve(self, config: ConfigT) -> ConfigT:
        """The config that the plan carries, with what only the driver knows, as `OperatorConstructor.resolve`."""
        return config

    @abstractmethod
    def with_config(self, config: ConfigT, registry: Registry) -> LookupTable:
        """Check the config and make the table; raise `ConfigError` naming the field otherwise.

        Called with the resolved config, on the driver and on executors, any number of times. Must not change it,
        and must have no effect on the outside.
        """
