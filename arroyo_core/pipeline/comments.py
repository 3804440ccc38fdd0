"""The comments of config messages, which compiled descriptors do not have.

A package keeps them in `descriptors.binpb`, a descriptor set with source info that protoc writes:

    protoc --include_source_info --descriptor_set_out=src/acme/descriptors.binpb ...
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import cast

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError, Message

from arroyo_core.errors import PluginError

FILE_NAME = "descriptors.binpb"


def read_comments(config_type: type[Message]) -> Mapping[str, str]:
    """The comments of a message and of all it refers to, by full name; `enum.value` for the values of enums.

    Empty where its package keeps none. Raises `PluginError` for a file that is not a descriptor set.
    """
    comments: dict[str, str] = {}
    for package in _packages(config_type):
        comments |= _package_comments(package)
    return comments


def _packages(config_type: type[Message]) -> list[str]:
    """The packages of the message's own module, and of the files that its file imports."""
    modules = [config_type.__module__]
    files = [cast(FileDescriptor, config_type.DESCRIPTOR.file)]
    for file in files:
        files += [each for each in file.dependencies if each not in files]
        modules.append(file.name.removesuffix(".proto").replace("/", "."))
    parents = [module.rpartition(".")[0] for module in modules]
    return [package for package in dict.fromkeys(parents) if package and not package.startswith("google.")]


@cache
def _package_comments(package: str) -> Mapping[str, str]:
    """From the nearest file, in the package or in one above it."""
    while package:
        try:
            content = resources.files(package).joinpath(FILE_NAME).read_bytes()
        except (ModuleNotFoundError, FileNotFoundError, NotADirectoryError, TypeError):
            package = package.rpartition(".")[0]
            continue
        try:
            found = FileDescriptorSet.FromString(content)
        except DecodeError as error:
            raise PluginError(f"{FILE_NAME} of the package {package} is not a descriptor set: make it again") from error
        return {name: text for file in found.file for name, text in _file_comments(file)}
    return {}


def _file_comments(file: FileDescriptorProto) -> Iterator[tuple[str, str]]:
    by_path = {
        tuple(location.path): location.leading_comments or location.trailing_comments
        for location in file.source_code_info.location
    }
    prefix = f"{file.package}." if file.package else ""
    for name, path in _named_paths(file, prefix):
        text = textwrap.dedent(by_path.get(path, "")).strip()
        if text:
            yield name, text


def _named_paths(file: FileDescriptorProto, prefix: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    message_number, enum_number = (
        FileDescriptorProto.DESCRIPTOR.fields_by_name[name].number for name in ("message_type", "enum_type")
    )
    for place, message in enumerate(file.message_type):
        yield from _message_paths(message, prefix, (message_number, place))
    for place, enum in enumerate(file.enum_type):
        yield from _enum_paths(enum, prefix, (enum_number, place))


def _message_paths(
    message: DescriptorProto, prefix: str, path: tuple[int, ...]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    numbers = {field.name: field.number for field in DescriptorProto.DESCRIPTOR.fields}
    name = f"{prefix}{message.name}"
    yield name, path
    for place, field in enumerate(message.field):
        yield f"{name}.{field.name}", (*path, numbers["field"], place)
    for place, nested in enumerate(message.nested_type):
        yield from _message_paths(nested, f"{name}.", (*path, numbers["nested_type"], place))
    for place, enum in enumerate(message.enum_type):
        yield from _enum_paths(enum, f"{name}.", (*path, numbers["enum_type"], place))


def _enum_paths(enum: EnumDescriptorProto, prefix: str, path: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    name = f"{prefix}{enum.name}"
    yield name, path
    number = EnumDescriptorProto.DESCRIPTOR.fields_by_name["value"].number
    for place, value in enumerate(enum.value):
        yield f"{name}.{value.name}", (*path, number, place)
