"""Keys and values of global tables as msgpack: no pickle, typed when read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from arroyo_core.state.failures import StateValueError, UnsupportedStateVersionError

Decoder = Callable[[bytes], Any]

#: One key or value, which must fit into a chunk of a column.
MAX_ENCODED_BYTES = 2**29

_ENCODER = msgspec.msgpack.Encoder(order="deterministic")


class MigratableState:
    """A value type with a version, and the way from the version before.

    `PREVIOUS` is the type of version `VERSION - 1`, itself a `MigratableState` when there are
    more steps; None for the first. State of any version of the chain is read; each step calls `migrate`.
    A plain class, so that msgspec structs and dataclasses can derive from it.
    """

    VERSION: ClassVar[int]
    PREVIOUS: ClassVar[type | None] = None

    @classmethod
    def migrate(cls, previous: Any) -> Any:
        """This version of a value of the previous version; must not fail for any value that was written."""
        raise NotImplementedError(f"{cls.__name__} names a PREVIOUS type and must define migrate()")


def encode(value: Any, *, table: str, what: str) -> bytes:
    """The msgpack of a key or value; equal ones have equal bytes."""
    try:
        encoded = _ENCODER.encode(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise StateValueError(
            f"table {table!r} cannot hold the {what} {value!r:.200}: {error} (allowed: None, bool, int of 64 bits, "
            "float, str, bytes, datetime, tuples, lists, dicts, dataclasses, msgspec structs)"
        ) from error
    if len(encoded) > MAX_ENCODED_BYTES:
        raise StateValueError(
            f"table {table!r} cannot hold a {what} of {len(encoded)} bytes: at most {MAX_ENCODED_BYTES} are allowed; "
            "keep its parts under keys of their own"
        )
    return encoded


def key_decoder(key_type: Any, *, table: str) -> Decoder:
    """Decodes keys; without a type arrays become tuples, so that every key can be a dictionary's."""
    if key_type is not None:
        return _typed(key_type, table=table, what="key")
    untyped = _typed(Any, table=table, what="key")

    def decode(data: bytes) -> Any:
        key = untyped(data)
        return key if isinstance(key, str | int | bytes) else _hashable(key, table)

    return decode


def value_decoder(value_type: Any, *, table: str, written: int, current: int) -> Decoder:
    """Decodes values that were written under version `written`, migrated step by step to `current`."""
    if written > current:
        raise UnsupportedStateVersionError(
            f"table {table!r} holds state of version {written}; this code reads up to version {current}: "
            "it is older than the code that wrote the checkpoint"
        )
    steps: list[Any] = []
    version, kind = current, value_type
    while version > written:
        previous = getattr(kind, "PREVIOUS", None)
        if previous is None:
            raise UnsupportedStateVersionError(
                f"table {table!r} holds state of version {written}, and {_name(value_type)} reads "
                f"versions {version} to {current}"
            )
        steps.append(kind)
        version, kind = version - 1, previous
    decode = _typed(Any if kind is None else kind, table=table, what="value")
    if not steps:
        return decode
    steps.reverse()

    def migrate(data: bytes) -> Any:
        value = decode(data)
        for step in steps:
            value = step.migrate(value)
        return value

    return migrate


def check_version(value_type: Any, *, table: str, declared: int) -> None:
    """Raise if a value type with a version is used for a table declared with another."""
    version = getattr(value_type, "VERSION", None)
    if version is not None and version != declared:
        raise StateValueError(
            f"table {table!r} is declared with version {declared}, "
            f"its value type {_name(value_type)} has version {version}"
        )


def _typed(kind: Any, *, table: str, what: str) -> Decoder:
    decoder = msgspec.msgpack.Decoder(kind)

    def decode(data: bytes) -> Any:
        try:
            return decoder.decode(data)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise StateValueError(
                f"table {table!r} holds a {what} that is not of type {_name(kind)}: {error}"
            ) from error

    return decode


def _hashable(key: Any, table: str) -> Any:
    if isinstance(key, list):
        return tuple(_hashable(part, table) for part in key)
    if isinstance(key, dict):
        raise StateValueError(f"table {table!r} has keys with fields: give get_global_keyed_state their key_type")
    return key


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", None) or str(kind)
