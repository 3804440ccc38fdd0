"""Values inside JSON texts: found by name or place, and kept as they are written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import Any

import msgspec

#: The JSON text of one value, or None where there is none.
Found = bytes | None
Finder = Callable[[str | bytes], Found]

_INDEX = re.compile(r"-?\d{1,18}", re.ASCII)
#: What JSON writes with a backslash.
_ESCAPED = re.compile(r"[\"\\\x00-\x1f]")
_OBJECTS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAYS = msgspec.json.Decoder(list[msgspec.Raw])
_VALUES = msgspec.json.Decoder()
_RAW = msgspec.json.Decoder(msgspec.Raw)
_BLANKS = " \t\r\n"
#: Of a text that is not JSON, or is so deep that a parser gives up: both are NULL.
_UNREADABLE = (msgspec.DecodeError, RecursionError)
_SPACES = re.compile(rb"[ \t\r\n]")


@lru_cache(maxsize=1024)
def finder(key: str) -> Finder:
    """What finds the value under a name of an object; a whole number also finds an element of an array.

    None for texts that are not JSON, and for those without such a value. Of several values under one name the last
    counts.
    """
    if _ESCAPED.search(key):
        return partial(_find_escaped, key)
    # All other names are skipped without being made into values.
    entry = msgspec.defstruct("Entry", [("value", msgspec.Raw, msgspec.Raw(b""))], rename={"value": key})
    # The type is made here, so that nothing is known of its only field.
    decode: Callable[[str | bytes], Any] = msgspec.json.Decoder(entry).decode
    index = int(key) if _INDEX.fullmatch(key) else None

    def find(text: str | bytes) -> Found:
        if index is not None and _first(text) == "[":
            elements = array_of(text)
            is_there = elements is not None and -len(elements) <= index < len(elements)
            return bytes(elements[index]) if elements is not None and is_there else None
        try:
            return bytes(decode(text).value) or None
        except _UNREADABLE:
            return None

    return find


def _find_escaped(key: str, text: str | bytes) -> Found:
    """As `finder`, for names that a type cannot have for a field."""
    found = (object_of(text) or {}).get(key)
    return None if found is None else bytes(found)


def object_of(text: str | bytes) -> dict[str, msgspec.Raw] | None:
    """The values of an object by name, as they are written; None for any other text."""
    found: dict[str, msgspec.Raw] | None = _decoded(_OBJECTS, text)
    return found


def array_of(text: str | bytes) -> list[msgspec.Raw] | None:
    """The elements of an array, as they are written; None for any other text."""
    found: list[msgspec.Raw] | None = _decoded(_ARRAYS, text)
    return found


def whole(text: str | bytes) -> Found:
    """The value of a whole text, without what is around it; None if it is not JSON."""
    try:
        return bytes(_RAW.decode(text)).strip(b" \t\r\n")
    except _UNREADABLE:
        return None


def compact(value: bytes) -> bytes:
    """The same value without blanks between its parts; numbers and texts stay as they are written."""
    if value[:1] not in b"{[" or not _SPACES.search(value):
        return value
    return msgspec.json.format(value, indent=-1)


def text_of(value: bytes) -> str | None:
    """The characters of a JSON text; None where they are not Unicode."""
    if b"\\" not in value:
        return value[1:-1].decode()
    try:
        found: str = _VALUES.decode(value)
    except _UNREADABLE:
        return None
    return found


def children(value: bytes) -> Iterable[bytes]:
    """The values of an object or the elements of an array, in order."""
    if value[:1] == b"{":
        return [bytes(each) for each in (object_of(value) or {}).values()]
    return [bytes(each) for each in array_of(value) or ()] if value[:1] == b"[" else ()


def descendants(value: bytes) -> Iterator[bytes]:
    """The value and all that are in it, outer ones first."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(reversed(list(children(each))))


def _decoded(decoder: msgspec.json.Decoder[Any], text: str | bytes) -> Any:
    try:
        return decoder.decode(text)
    except _UNREADABLE:
        return None


def _first(text: str | bytes) -> str:
    if isinstance(text, bytes):
        return text.lstrip()[:1].decode("ascii", "replace")
    return text.lstrip(_BLANKS)[:1]
