"""`PartedLookup`: the base of tables that are asked by key, so many keys at a time."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import pyarrow as pa

from arroyo_core.api import KeyedLookupTable
from arroyo_core.errors import ArroyoError


class PartedLookup(KeyedLookupTable):
    """Asks for the keys of a batch in parts. Whoever looks rows up keeps the answers: a connector needs no cache."""

    #: How many keys are asked for at once.
    keys_at_once: ClassVar[int] = 10_000

    @abstractmethod
    def ask(self, keys: pa.Table, schema: pa.Schema) -> pa.Table:
        """As `find`, for at most `keys_at_once` keys; may raise what the client library raises."""

    def translate(self, error: Exception) -> Exception | None:
        """What to raise for an exception of the client library: `ExternalError` where a later try may help.

        None lets it through as it is, so that the job fails.
        """
        return None

    def find(self, keys: pa.Table, schema: pa.Schema) -> pa.Table:
        try:
            size = self.keys_at_once
            parts = [self.ask(keys.slice(first, size), schema) for first in range(0, keys.num_rows, size)]
        except ArroyoError:
            raise
        except Exception as error:
            translated = self.translate(error)
            if translated is None:
                raise
            raise translated from error
        return pa.concat_tables(parts) if len(parts) > 1 else parts[0]
