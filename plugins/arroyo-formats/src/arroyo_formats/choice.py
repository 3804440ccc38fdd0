"""The setting `format` of a connector: a name, or a mapping with the name and the format's own settings."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pyarrow as pa
from google.protobuf import json_format, struct_pb2
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from arroyo_core.api import with_defaults
from arroyo_core.api.config_defaults import parse_value
from arroyo_core.errors import ConfigError, PluginError
from arroyo_core.plugin import PluginSet, installed_plugins
from arroyo_formats.files import FileFormat
from arroyo_formats.format import Format, MessageReader, MessageWriter

_NAME = "name"


@dataclass(frozen=True, slots=True)
class FormatChoice:
    """A format with its settings, as a connector's config has them."""

    format: Format
    #: May hold secrets, so it is never shown.
    settings: Message = field(repr=False)

    @property
    def name(self) -> str:
        return self.format.name

    def for_topic(self, topic: str, part: str = "value") -> FormatChoice:
        """The choice for messages of a topic, before `resolve`; `part` is `key` where it is about their keys."""
        return FormatChoice(self.format, self.format.for_topic(self.settings, topic, part))

    def resolve(self) -> FormatChoice:
        """The choice that executors are sent; on the driver, once."""
        with _path_in_config("format"):
            return FormatChoice(self.format, self.format.resolve(self.settings))

    def schema(self, declared: pa.Schema | None) -> pa.Schema:
        """The columns of messages; raises `ConfigError`, as `Format.schema` does."""
        with _path_in_config("format", "schema"):
            return self.format.schema(self.settings, declared)

    def check_files(self, schema: pa.Schema | None) -> None:
        """Raises `ConfigError`, as `FileFormat.check_schema` does."""
        with _path_in_config("format", "schema"):
            self.files().check_schema(self.settings, schema)

    def reader(self, schema: pa.Schema) -> MessageReader:
        return self.format.reader(self.settings, schema)

    def writer(self, schema: pa.Schema) -> MessageWriter:
        return self.format.writer(self.settings, schema)

    def files(self) -> FileFormat:
        """What it does with files; raises `ConfigError` where that makes no sense."""
        if self.format.files is None:
            raise ConfigError(
                f"there are no {self.name} files", field="format", value=self.name, allowed=sorted(file_formats())
            )
        return self.format.files

    def to_value(self) -> struct_pb2.Value:
        """What `read_choice` makes this choice of: for resolved configs."""
        settings = json_format.MessageToDict(self.settings, preserving_proto_field_name=True)
        value = struct_pb2.Value()
        if settings:
            value.struct_value.update({_NAME: self.name, **settings})
        else:
            value.string_value = self.name
        return value


def read_choice(
    value: struct_pb2.Value, *, default: str | None = None, plugins: PluginSet | None = None
) -> FormatChoice:
    """The format that a config's field `format` names; raises `ConfigError` with the path of what is wrong."""
    name, written = _split(value, default)
    found = find_format(name, plugins)
    settings = found.settings_type()
    for key, item in written.items():
        _read_setting(settings, key, item)
    return FormatChoice(found, with_defaults(settings))


def find_format(name: str, plugins: PluginSet | None = None) -> Format:
    """The format of this name; raises `ConfigError` that lists all, `PluginError` where two distributions claim it."""
    formats, disputed = _claims(plugins)
    if name in disputed:
        raise PluginError(disputed[name])
    if name not in formats:
        near = difflib.get_close_matches(name, formats, n=1)
        raise ConfigError(
            f"there is no format {name!r}",
            field="format",
            value=name,
            allowed=sorted(formats),
            suggestion=near[0] if near else None,
        )
    return formats[name]


def installed_formats(plugins: PluginSet | None = None) -> Mapping[str, Format]:
    """All formats of this environment, by name, without those that two distributions claim."""
    return _claims(plugins)[0]


def _claims(plugins: PluginSet | None) -> tuple[Mapping[str, Format], Mapping[str, str]]:
    """The formats by name, and the names that nobody gets, with the reason."""
    plugins = plugins or installed_plugins()
    found: dict[str, tuple[Format, Any]] = {}
    disputed: dict[str, str] = {}
    for item, origin in plugins.hooks.collect("arroyo_format", Format):
        if item.name in found:
            disputed[item.name] = (
                f"format {item.name!r} is claimed by {found[item.name][1]} and by {origin}: uninstall one of them, or "
                "block it with ARROYO_BLOCK_PLUGINS"
            )
        found[item.name] = (item, origin)
    return {name: item for name, (item, _) in found.items() if name not in disputed}, disputed


def file_formats(plugins: PluginSet | None = None) -> Mapping[str, FileFormat]:
    """What the formats do with files, by name, where they do."""
    return {name: item.files for name, item in installed_formats(plugins).items() if item.files is not None}


def is_chosen(value: struct_pb2.Value) -> bool:
    """Whether a config's field `format` says anything: an empty text and null do not."""
    return value.WhichOneof("kind") not in (None, "null_value") and value != struct_pb2.Value(string_value="")


def _split(value: struct_pb2.Value, default: str | None) -> tuple[str, dict[str, Any]]:
    try:
        plain: Any = json_format.MessageToDict(value) if is_chosen(value) else None
    except ValueError:
        # Infinity and NaN, which are no setting either.
        plain = ()
    if plain is None:
        if default is None:
            raise ConfigError("format is needed", field="format", allowed=sorted(installed_formats()))
        return default, {}
    if isinstance(plain, str):
        return plain.lower(), {}
    if isinstance(plain, dict) and isinstance(plain.get(_NAME, default), str):
        return str(plain.pop(_NAME, default)).lower(), plain
    raise ConfigError(
        "a format is a name, such as json, or a mapping with name and settings, such as {name: csv, delimiter: ';'}",
        field="format",
        value=str(plain),
    )


def _read_setting(settings: Message, key: str, item: Any, parent: str = "format") -> None:
    known = {each.name: each for each in cast(Descriptor, settings.DESCRIPTOR).fields}
    found = known.get(key) or {each.json_name: each for each in known.values()}.get(key)
    path = f"{parent}.{key}"
    if found is None:
        near = difflib.get_close_matches(key, known, n=1)
        raise ConfigError(
            f"there is no setting {key!r} of this format",
            field=path,
            value=key,
            allowed=list(known),
            suggestion=near[0] if near else None,
        )
    if isinstance(item, dict) and _holds_settings(found):
        # One by one, so that a mistake has its own path, and no message shows the settings beside it.
        nested = getattr(settings, found.name)
        nested.SetInParent()
        for inner, value in item.items():
            _read_setting(nested, inner, value, path)
        return
    is_text = isinstance(item, str) and not found.is_repeated and found.message_type is None
    try:
        # As in configs of operators: `64MiB`, `10s`, and `true` from a variable.
        plain = parse_value(found, item) if is_text and found.type != found.TYPE_BYTES else item
        json_format.ParseDict({key: plain}, settings)
    except (json_format.ParseError, ValueError) as error:
        reason = str(error).rpartition(": ")[2]
        raise ConfigError(f"{key} cannot be {item!r}: {reason}", field=path, value=str(item)) from error


def _holds_settings(found: Any) -> bool:
    kind = found.message_type
    return kind is not None and not found.is_repeated and not kind.full_name.startswith("google.protobuf.")


@contextmanager
def _path_in_config(*own: str) -> Iterator[None]:
    """Mistakes get a path that begins at the connector's config, unless it begins with one of its `own` fields."""
    try:
        yield
    except ConfigError as error:
        if error.field is not None and error.field.partition(".")[0] in own:
            raise
        raise error.within("format") from error
