"""The view of a global keyed table, and what it finds in the table's files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from arroyo_core.api.hashing import hash_bytes
from arroyo_core.api.views import GlobalKeyedState
from arroyo_core.ids import FULL_KEY_RANGE, KeyRange
from arroyo_core.state import codec
from arroyo_core.state.chunks import one_chunk
from arroyo_core.state.files import Hashes, key_hashes
from arroyo_core.state.keys import place_in_range
from arroyo_core.state.messages import KeyedData

K = TypeVar("K")
V = TypeVar("V")

#: Up to this many rows a view decodes its files at once; above, it looks keys up in the sorted runs.
EAGER_ROWS = 20_000

_SCALARS = (int, str, float, bool, bytes, type(None))
_ABSENT = object()


class StoredValues:
    """What the files of a global table say of each key: its newest value and that value's version.

    The hashes of a partitioned table are moved into `placement`. With `is_looked_up` off there are no lookups.
    """

    def __init__(
        self,
        runs: Sequence[tuple[pa.Table, int]],
        *,
        placement: KeyRange = FULL_KEY_RANGE,
        is_looked_up: bool = True,
    ) -> None:
        self._runs = [_StoredRun(table, version) for table, version in runs if table.num_rows]
        self._placement = placement
        self._eager: dict[bytes, tuple[bytes, int]] | None = None
        if is_looked_up and sum(table.num_rows for table, _ in runs) <= EAGER_ROWS:
            self._eager = self._load()

    @property
    def is_eager(self) -> bool:
        """Whether a lookup is no more than one of a dictionary."""
        return self._eager is not None

    def find(self, key: bytes) -> tuple[bytes, int] | None:
        if self._eager is not None:
            return self._eager.get(key)
        key_hash = place_in_range(np.array([hash_bytes(key)], dtype=np.uint64), self._placement)[0]
        for run in reversed(self._runs):
            row = run.find(key, key_hash)
            if row is not None:
                return row if row[0] is not None else None
        return None

    def items(self) -> Iterator[tuple[bytes, tuple[bytes, int]]]:
        yield from (self._eager if self._eager is not None else self._load()).items()

    def _load(self) -> dict[bytes, tuple[bytes, int]]:
        loaded: dict[bytes, tuple[bytes, int]] = {}
        for run in self._runs:
            for key, value in zip(run.keys.to_pylist(), run.values.to_pylist(), strict=True):
                if value is None:
                    loaded.pop(key, None)
                else:
                    loaded[key] = (value, run.version)
        return loaded


class _StoredRun:
    def __init__(self, table: pa.Table, version: int) -> None:
        self.hashes: Hashes = key_hashes(table)
        self.keys = one_chunk(table.column("key"))
        self.values = one_chunk(table.column("value"))
        self.version = version

    def find(self, key: bytes, key_hash: np.uint64) -> tuple[Any, int] | None:
        row = int(np.searchsorted(self.hashes, key_hash, side="left"))
        while row < len(self.hashes) and self.hashes[row] == key_hash:
            if self.keys[row].as_py() == key:
                return self.values[row].as_py(), self.version
            row += 1
        return None


class GlobalKeyedView(GlobalKeyedState[K, V]):
    """A subtask's view of a global keyed table; its methods are described by `GlobalKeyedState`."""

    def __init__(
        self,
        *,
        table: str,
        stored: StoredValues,
        key_type: Any,
        value_type: Any,
        state_version: int,
    ) -> None:
        codec.check_version(value_type, table=table, declared=state_version)
        self._table = table
        self._stored = stored
        self.value_type = value_type
        self._version = state_version
        self._decode_key = codec.key_decoder(key_type, table=table)
        self._decoders: dict[int, codec.Decoder] = {}
        #: What was inserted since the last checkpoint; None for a removed key.
        self._changes: dict[bytes, bytes | None] = {}
        #: What was inserted before that, since the table was opened.
        self._checkpointed: dict[bytes, bytes | None] = {}
        self._decoded: dict[bytes, Any] = {}

    def get(self, key: K, default: V | None = None) -> V | None:
        value = self._value(self._encode_key(key))
        return default if value is _ABSENT else value

    def __contains__(self, key: K) -> bool:
        return self._find(self._encode_key(key)) is not None

    def insert(self, key: K, value: V) -> None:
        encoded_key = self._encode_key(key)
        encoded = codec.encode(value, table=self._table, what="value")
        known = encoded_key in self._changes or encoded_key in self._checkpointed or self._stored.is_eager
        if known and self._find(encoded_key) == (encoded, self._version):
            return
        self._changes[encoded_key] = encoded
        if self.value_type is None and type(value) in _SCALARS:
            self._decoded[encoded_key] = value
        else:
            self._decoded.pop(encoded_key, None)

    def remove(self, key: K) -> V | None:
        encoded_key = self._encode_key(key)
        value = self._value(encoded_key)
        if value is _ABSENT:
            return None
        self._changes[encoded_key] = None
        self._decoded.pop(encoded_key, None)
        removed: V | None = value
        return removed

    def get_all(self) -> dict[K, V]:
        keys = [key for key, _ in self._stored.items()]
        known = set(keys)
        keys.extend(key for key in {**self._checkpointed, **self._changes} if key not in known)
        found = ((key, self._value(key)) for key in keys)
        return {self._decode_key(key): value for key, value in found if value is not _ABSENT}

    def take_changes(self) -> KeyedData:
        """All that the checkpoint has to write."""
        changes, self._changes = self._changes, {}
        for key, value in changes.items():
            if value is None and self._stored.find(key) is None:
                self._checkpointed.pop(key, None)
            else:
                self._checkpointed[key] = value
        if not self._stored.is_eager:
            # A view that lives on would have all of a large table decoded in the end.
            self._decoded.clear()
        return KeyedData(changes)

    def read_again(self, stored: StoredValues) -> None:
        """Take what the files say now, which have all that was inserted; right after a checkpoint."""
        self._stored = stored
        self._checkpointed.clear()
        self._decoded.clear()

    def _encode_key(self, key: K) -> bytes:
        return codec.encode(key, table=self._table, what="key")

    def _find(self, key: bytes) -> tuple[bytes, int] | None:
        changed: Any = self._changes.get(key, _ABSENT)
        if changed is _ABSENT:
            changed = self._checkpointed.get(key, _ABSENT)
        if changed is _ABSENT:
            return self._stored.find(key)
        return None if changed is None else (changed, self._version)

    def _value(self, key: bytes) -> Any:
        value = self._decoded.get(key, _ABSENT)
        if value is not _ABSENT:
            return value
        found = self._find(key)
        if found is None:
            return _ABSENT
        value = self._decoder(found[1])(found[0])
        self._decoded[key] = value
        return value

    def _decoder(self, written: int) -> codec.Decoder:
        decoder = self._decoders.get(written)
        if decoder is None:
            decoder = codec.value_decoder(self.value_type, table=self._table, written=written, current=self._version)
            self._decoders[written] = decoder
        return decoder
