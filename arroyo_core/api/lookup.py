"""Tables that another distribution brings, for operators that look rows up in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, ClassVar, Generic

import pyarrow as pa
from google.protobuf.message import Message

from arroyo_core.api.constructor import ConfigT

if TYPE_CHECKING:
    from arroyo_core.api.registry import Registry


class LookupSource(ABC):
    """What rows are looked up in; a `LookupTable`, or a `KeyedLookupTable` where the table is too large to be read."""

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


class LookupTable(LookupSource):
    """A table that is small enough to be read as a whole, such as a file or a compacted topic.

    Whoever looks rows up reads it, keeps it by `cache_key`, and reads it again when it is too old.
    """

    @abstractmethod
    def read(self, schema: pa.Schema, max_bytes: int) -> pa.Table:
        """All rows as they are now. `schema` is what `schema()` was when the pipeline was planned, in plain types.

        Called in tasks, by one thread at a time. Raises `DataError` for a table that is larger than `max_bytes`, has
        other columns now, or has rows that cannot be read; `ExternalError` in an outage.
        """


class KeyedLookupTable(LookupSource):
    """A table that is asked for the rows of some keys, many at once, such as a table of a database.

    Whoever looks rows up keeps the answers by `cache_key`, also for keys without a row, and asks again for those that
    are too old. The same keys may be asked by several tasks at once.
    """

    def check_keys(self, keys: Sequence[str]) -> None:
        """Raise `ConfigError` where the table cannot be asked by these of its columns. Called on the driver to plan."""
        return

    @abstractmethod
    def find(self, keys: pa.Table, schema: pa.Schema) -> pa.Table:
        """The rows whose values in the columns of `keys` are those of any row of it, as they are now, in any order.

        `keys` has no row twice, no NULL, and at least one row; its columns have names and types of `schema`, which is
        what `schema()` was when the pipeline was planned, in plain types. Rows of other keys may come, too: they are
        left out. Called in tasks, by one thread at a time for each instance. Raises `DataError` where the table has
        other columns now, or rows that cannot be read; `ExternalError` in an outage.
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
    def with_config(self, config: ConfigT, registry: Registry) -> LookupSource:
        """Check the config and make the table; raise `ConfigError` naming the field otherwise.

        Called with the resolved config, on the driver and on executors, any number of times. Must not change it,
        and must have no effect on the outside.
        """
