"""Message types of compiled files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor

from arroyo_formats.protobuf.compiling import ProtoError


def load(files: descriptor_pb2.FileDescriptorSet) -> descriptor_pool.DescriptorPool:
    """A pool of its own, so that files of different readers do not meet."""
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        try:
            pool.AddSerializedFile(file.SerializeToString())
        except TypeError as error:
            raise ProtoError(f"{file.name}: {error}") from error
    return pool


def message_names(files: descriptor_pb2.FileDescriptorSet) -> list[str]:
    """The full names of all messages, those first that are in the last file: it is the one that was compiled."""
    return [name for file in reversed(files.file) for name, message in _messages(file) if not message.options.map_entry]


def _messages(file: descriptor_pb2.FileDescriptorProto) -> Iterator[tuple[str, descriptor_pb2.DescriptorProto]]:
    """The messages of a file with their full names, nested ones last."""
    prefix = f"{file.package}." if file.package else ""
    level = [(prefix + message.name, message) for message in file.message_type]
    while level:
        yield from level
        level = [(f"{name}.{nested.name}", nested) for name, message in level for nested in message.nested_type]


def find_message(files: descriptor_pb2.FileDescriptorSet, name: str) -> Descriptor:
    """A message by its full name."""
    try:
        return load(files).FindMessageTypeByName(name)
    except KeyError as error:
        raise ProtoError(f"there is no message {name!r}") from error


def message_at(files: descriptor_pb2.FileDescriptorSet, path: Sequence[int]) -> str:
    """The full name of the message at a place in the last file; raises `ProtoError` where there is none."""
    file = files.file[-1]
    name, level = file.package, file.message_type
    for index in path:
        if not 0 <= index < len(level):
            raise ProtoError(f"its schema has no message type at {list(path)}")
        name = f"{name}.{level[index].name}" if name else level[index].name
        level = level[index].nested_type
    return name


def place_of(files: descriptor_pb2.FileDescriptorSet, name: str) -> tuple[int, ...]:
    """The place of a message in the last file; raises `ProtoError` where it is in another."""
    file = files.file[-1]
    rest = name.removeprefix(f"{file.package}.") if file.package else name
    place, level = [], file.message_type
    for part in rest.split("."):
        names = [message.name for message in level]
        if part not in names:
            raise ProtoError(f"message {name!r} is not in {file.name}")
        place.append(names.index(part))
        level = level[place[-1]].nested_type
    return tuple(place)


def pruned(
    files: descriptor_pb2.FileDescriptorSet, name: str, columns: Collection[str]
) -> descriptor_pb2.FileDescriptorSet:
    """The files, with the fields of one message that are columns. Others are unknown then, and skipped.

    Fields of a `oneof` stay together: the last that is set unsets the others.
    """
    copy = descriptor_pb2.FileDescriptorSet()
    copy.CopyFrom(files)
    message = _proto(copy, name)
    together = {field.oneof_index for field in message.field if field.HasField("oneof_index") and field.name in columns}
    kept = [
        field
        for field in message.field
        if field.name in columns or (field.HasField("oneof_index") and field.oneof_index in together)
    ]
    order = sorted(together)
    declared = [message.oneof_decl[index] for index in order]
    for field in kept:
        if field.HasField("oneof_index"):
            field.oneof_index = order.index(field.oneof_index)
    fields = descriptor_pb2.DescriptorProto(field=kept, oneof_decl=declared)
    del message.field[:], message.oneof_decl[:]
    message.MergeFrom(fields)
    return copy


def _proto(files: descriptor_pb2.FileDescriptorSet, name: str) -> descriptor_pb2.DescriptorProto:
    for file in files.file:
        for found, message in _messages(file):
            if found == name:
                return message
    raise ProtoError(f"there is no message {name!r}")
