"""Renames a package inside generated protobuf code, without the compiler: a new plugin works before it is installed."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import Message

_SERIALIZED = re.compile(r"(?<=AddSerializedFile\()b(?P<quote>['\"]).*(?P=quote)(?=\))")
_RANGE = re.compile(r"_globals\['_(?P<name>\w+)'\]\._serialized_(?P<end>start|end)=\d+")


def renamed_module(text: str, apply: Callable[[str], str]) -> str:
    """The text of a `_pb2.py` whose names are those that `apply` gives."""
    match = _SERIALIZED.search(text)
    if match is None:
        raise ValueError("no generated code: it has no AddSerializedFile")
    file = FileDescriptorProto.FromString(ast.literal_eval(match.group()))
    _rename(file, apply)
    data = file.SerializeToString()
    text = text[: match.start()] + repr(data) + text[match.end() :]
    ranges = {message.name.upper(): _range(message, data) for message in file.message_type}

    def place(found: re.Match[str]) -> str:
        start, end = ranges[found["name"]]
        return f"_globals['_{found['name']}']._serialized_{found['end']}={start if found['end'] == 'start' else end}"

    return apply(_RANGE.sub(place, text))


def renamed_descriptors(data: bytes, apply: Callable[[str], str]) -> bytes:
    """The same for a file of descriptors with their comments."""
    files = FileDescriptorSet.FromString(data)
    _rename(files, apply)
    return files.SerializeToString()


def _range(message: DescriptorProto, data: bytes) -> tuple[int, int]:
    """Where a message is in its file; pure-Python protobuf asks for that."""
    inner = message.SerializeToString()
    start = data.index(inner)
    return start, start + len(inner)


def _rename(message: Message, apply: Callable[[str], str]) -> None:
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_STRING:
            _set_text(message, field, value, apply)
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in value if field.is_repeated else [value]:
                _rename(inner, apply)


def _set_text(message: Message, field: Any, value: Any, apply: Callable[[str], str]) -> None:
    if field.is_extension:
        message.Extensions[field] = apply(value)
    elif field.is_repeated:
        getattr(message, field.name)[:] = [apply(text) for text in value]
    else:
        setattr(message, field.name, apply(value))
