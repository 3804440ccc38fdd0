"""Config fields that are marked `(arroyo_core.secret)`: their values, as they are written and as messages hold them.

A string that is marked is a secret. A map that is marked holds settings, of which some are secrets: those whose names
say so, and whatever is not a plain word or a small number. In fields of any form, such as the settings of a format, the
names say it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, cast

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from arroyo_core.pipeline.document import Entry, Scalar, YamlList, YamlMap, YamlValue
from arroyo_core.pipeline.environment import REFERENCE, Environment
from arroyo_core.pipeline.field_options import fields_by_key, has_option, is_map
from arroyo_core.pipeline.lookup_configs import Lookups, named_by, unpack, written_lookup
from arroyo_core.pipeline.mistakes import Mistakes, nearest
from arroyo_core.pipeline.redaction import HIDDEN, Redaction
from arroyo_core.pipeline.wellknown import DYNAMIC, WELL_KNOWN
from arroyo_core.proto import options_pb2

#: The last word of a name, or its last two, that says its value is a secret.
_SECRET_NAMES = {"password", "passwd", "passphrase", "pwd", "secret", "token", "credentials", "apikey"}
_SECRET_PAIRS = {("api", "key"), ("access", "key"), ("account", "key"), ("private", "key"), ("secret", "key")}
#: What holds names of columns, in fields of any form.
_COLUMNS = {"schema", "columns", "properties"}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class SecretScalar:
    """A written value of a secret field. `setting` is its name in a map, None for what is a secret in itself."""

    value: Scalar
    setting: str | None = None

    @property
    def is_in_clear(self) -> bool:
        """Whether the file has the value, and not only `${NAME}`."""
        return bool(self.value.text.strip()) and not _is_reference(self.value.written)


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name has a secret as its value: `password`, `sasl.password`, `secretAccessKey`."""
    words = [word.casefold() for word in _WORD.findall(name)]
    return bool(words) and (words[-1] in _SECRET_NAMES or tuple(words[-2:]) in _SECRET_PAIRS)


def is_secret(field: FieldDescriptor) -> bool:
    return has_option(field, options_pb2.secret)


def find_secrets(
    config: YamlValue | None, descriptor: Descriptor, lookups: Lookups = MappingProxyType({})
) -> Iterator[SecretScalar]:
    """Every value that a config has in secret fields, those of fields whose name is nearly theirs too.

    In configs of `lookups`, too; in the config of an unknown one what is under a name such as `password`.
    """
    by_key = fields_by_key(descriptor)
    for entry in config.entries if isinstance(config, YamlMap) else ():
        field = by_key.get(entry.key) or by_key.get(nearest(entry.key, by_key) or "")
        if field is not None and named_by(field):
            name = written_lookup(field, cast(YamlMap, config).entries)
            constructor = lookups.get(name.text) if name is not None else None
            if constructor is not None:
                yield from find_secrets(entry.value, cast(Descriptor, constructor.config_type.DESCRIPTOR), lookups)
            else:
                yield from _named_so(entry.value)
        elif field is not None:
            yield from _in_field(entry, field, lookups)


def hide_written(
    config: YamlValue | None,
    descriptor: Descriptor,
    environment: Environment,
    mistakes: Mistakes,
    *,
    lookups: Lookups = MappingProxyType({}),
) -> None:
    """Keep the values of secret fields, and the lines that hold them, out of everything that is shown from now on."""
    for secret in find_secrets(config, descriptor, lookups):
        _hide(environment.redaction, secret.value.text, secret.setting)
        if secret.is_in_clear:
            mistakes.hide_line(secret.value.at)


def hide_values(message: Message, redaction: Redaction) -> None:
    """Hide what the secret fields of a message hold."""
    for text, setting in _texts(message):
        _hide(redaction, text, setting)


def conceal(value: YamlValue) -> YamlValue:
    """A value of a secret field as mistakes may name it: references as they are written, and nothing else."""
    if isinstance(value, YamlList):
        return replace(value, items=[conceal(item) for item in value.items])
    if isinstance(value, YamlMap):
        return replace(value, entries=[replace(entry, value=conceal(entry.value)) for entry in value.entries])
    return value if value.is_null or _is_reference(value.written) else replace(value, written=HIDDEN)


def _in_field(entry: Entry, field: FieldDescriptor, lookups: Lookups) -> Iterator[SecretScalar]:
    message = field.message_type
    if is_secret(field):
        yield from _all_scalars(entry.value, None, is_map=is_map(field))
    elif message is not None and message.full_name in DYNAMIC:
        yield from _named_so(entry.value)
    elif message is not None and not is_map(field) and message.full_name not in WELL_KNOWN:
        for item in entry.value.items if isinstance(entry.value, YamlList) else [entry.value]:
            yield from find_secrets(item, message, lookups)


def _named_so(value: YamlValue) -> Iterator[SecretScalar]:
    """What is under a name such as `password`; columns of a schema may have such names too, and hold types."""
    if isinstance(value, YamlList):
        for item in value.items:
            yield from _named_so(item)
    elif isinstance(value, YamlMap):
        for entry in value.entries:
            if is_secret_name(entry.key) and isinstance(entry.value, Scalar):
                if not isinstance(entry.value.value, bool):
                    yield from _all_scalars(entry.value, entry.key, is_map=True)
            elif entry.key not in _COLUMNS:
                yield from _named_so(entry.value)


def _all_scalars(value: YamlValue, setting: str | None, *, is_map: bool) -> Iterator[SecretScalar]:
    if isinstance(value, YamlList):
        for item in value.items:
            yield from _all_scalars(item, setting, is_map=is_map)
    elif isinstance(value, YamlMap):
        for entry in value.entries:
            yield from _all_scalars(entry.value, entry.key if is_map else None, is_map=is_map)
    elif not value.is_unresolved:
        yield SecretScalar(value, setting)


def _is_reference(written: str) -> bool:
    """Whether a text refers to the environment, and has no value of its own: a default is one."""
    found = [match for match in REFERENCE.finditer(written) if match["name"] is not None]
    return bool(found) and all(match["default"] in (None, ":-") for match in found)


def _texts(message: Message, *, is_inside: bool = False) -> Iterator[tuple[str, str | None]]:
    """Each text in secret fields of a message, with its name if it is a setting; `is_inside` such a field all are."""
    if message.DESCRIPTOR.full_name in DYNAMIC and not is_inside:
        yield from _texts_named_so(json_format.MessageToDict(message))
        return
    for field, value in message.ListFields():
        if is_map(field):
            if is_inside or is_secret(field):
                yield from ((str(each), str(name)) for name, each in cast(Mapping[Any, Any], value).items())
            continue
        for each in value if field.is_repeated else [value]:
            if isinstance(each, Message) and named_by(field):
                held = unpack(each)
                yield from _texts(held, is_inside=is_inside or is_secret(field)) if held is not None else ()
            elif isinstance(each, Message):
                yield from _texts(each, is_inside=is_inside or is_secret(field))
            elif (is_inside or is_secret(field)) and isinstance(each, str):
                yield each, None


def _texts_named_so(value: Any) -> Iterator[tuple[str, str | None]]:
    if isinstance(value, list):
        for item in value:
            yield from _texts_named_so(item)
    elif isinstance(value, dict):
        for name, each in value.items():
            if is_secret_name(name) and isinstance(each, str):
                yield each, name
            elif name not in _COLUMNS:
                yield from _texts_named_so(each)


def _hide(redaction: Redaction, text: str, setting: str | None) -> None:
    if not text.strip():
        return
    if setting is None or is_secret_name(setting):
        redaction.hide(text, HIDDEN)
    else:
        redaction.hide_setting(text, HIDDEN)
