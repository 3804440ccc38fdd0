"""Reads a node's `config` as its operator's protobuf message, field by field.

This is protobuf's JSON form, walked over the message's descriptor so that every mistake has a
place, what is allowed and a suggestion. `arroyo_core/proto/options.proto` adds to the form.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Any, cast

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from arroyo_core.api.config_defaults import apply_defaults
from arroyo_core.errors import Location
from arroyo_core.pipeline.document import (
    Entry,
    Scalar,
    YamlList,
    YamlMap,
    YamlValue,
    describe,
    has_unresolved,
    is_unresolved,
    shown,
)
from arroyo_core.pipeline.field_options import (
    INT_RANGES,
    OptionError,
    accepts_null,
    choices_of,
    enum_names,
    fields_by_key,
    format_limit,
    has_default,
    has_option,
    is_map,
    limit,
    writable_fields,
)
from arroyo_core.pipeline.lookup_configs import Lookups, named_by, pack, written_lookup
from arroyo_core.pipeline.mistakes import Mistakes, nearest
from arroyo_core.pipeline.secret_fields import conceal, is_secret
from arroyo_core.pipeline.sql_parameters import quote_given
from arroyo_core.pipeline.values import (
    read_base64,
    read_bool,
    read_duration_us,
    read_float,
    read_int,
    read_size,
    read_string,
)
from arroyo_core.pipeline.wellknown import WELL_KNOWN, read_well_known
from arroyo_core.proto import options_pb2

_F = FieldDescriptor


def read_config(
    value: YamlValue | None,
    message_type: type[Message],
    *,
    at: Location,
    what: str,
    mistakes: Mistakes,
    lookups: Lookups = MappingProxyType({}),
) -> Message | None:
    """The message for a config (None or null for none), with defaults, or None when there is any mistake.

    `at` is the place of a mistake that has no value, `what` names the whole in messages.
    Configs of `lookups` inside of it are read as theirs; those of unknown ones are left empty.
    Raises `OptionError` for an operator whose message cannot be used.
    """
    message = message_type()
    found = Mistakes()
    is_absent = value is None or (isinstance(value, Scalar) and value.is_null)
    _Reader(found, lookups).read_message(None if is_absent else value, message, what=what, at=at)
    mistakes.extend(found)
    if found or has_unresolved(value):
        return None
    apply_defaults(message)
    return message


class _Reader:
    def __init__(self, mistakes: Mistakes, lookups: Lookups) -> None:
        self.mistakes = mistakes
        self.lookups = lookups

    def read_message(self, value: YamlValue | None, message: Message, *, what: str, at: Location) -> None:
        if is_unresolved(value):
            return
        descriptor = cast(Descriptor, message.DESCRIPTOR)
        if descriptor.full_name in WELL_KNOWN:
            if value is not None:
                read_well_known(value, message, what=what, mistakes=self.mistakes)
            return
        entries: Sequence[Entry] = ()
        if isinstance(value, YamlMap):
            entries = value.entries
        elif value is not None:
            fields = writable_fields(descriptor)
            names = ", ".join(fields)
            plural = "s" if len(fields) > 1 else ""
            wanted = f"a mapping with the field{plural} {names}" if names else "an empty mapping"
            self.mistakes.add(f"{what} must be {wanted}, not {describe(value)}", at=value.at, value=shown(value))
            return
        self.read_fields(entries, message, what=what)
        self.check_required(descriptor, entries, what=what, at=value.at if value is not None else at)

    def check_required(self, descriptor: Descriptor, entries: Sequence[Entry], *, what: str, at: Location) -> None:
        by_key = {entry.key: entry for entry in entries}
        known = {name for field in descriptor.fields for name in (field.name, field.json_name)}
        # A misspelled field is one mistake, not two.
        meant = {nearest(key, writable_fields(descriptor)) for key in by_key if key not in known}
        for field in descriptor.fields:
            if not has_option(field, options_pb2.required) or field.name in meant:
                continue
            entry = by_key.get(field.name) or by_key.get(field.json_name)
            if entry is None:
                self.mistakes.add(f"{what} needs the field {field.name!r}", at=at)
            elif _is_empty(entry.value):
                self.mistakes.add(f"{entry.key!r} must not be empty", at=entry.key_at)

    def read_fields(self, entries: Sequence[Entry], message: Message, *, what: str) -> None:
        descriptor = cast(Descriptor, message.DESCRIPTOR)
        fields, by_key = writable_fields(descriptor), fields_by_key(descriptor)
        written: dict[str, Entry] = {}
        oneofs: dict[str, Entry] = {}
        for entry in entries:
            field = by_key.get(entry.key)
            if field is None:
                self.mistakes.add_unknown(
                    f"{what} has no field {entry.key!r}", at=entry.key_at, name=entry.key, choices=fields
                )
                continue
            if field.name in written:
                first = written[field.name]
                self.mistakes.add(f"{entry.key!r} and {first.key!r} are the same field", at=entry.key_at)
                continue
            if isinstance(entry.value, Scalar) and entry.value.is_null and not accepts_null(field):
                continue
            oneof = field.containing_oneof
            if field.type == _F.TYPE_STRING and oneof is not None and has_default(oneof) and _is_blank(entry.value):
                continue
            written[field.name] = entry
            if oneof is not None:
                other = oneofs.setdefault(oneof.name, entry)
                if other is not entry:
                    choices = tuple(choice.name for choice in oneof.fields)
                    self.mistakes.add(
                        f"{entry.key!r} cannot be set together with {other.key!r} (line {other.key_at.line}): "
                        f"only one of {', '.join(choices)} is allowed",
                        at=entry.key_at,
                        value=entry.key,
                    )
                    continue
            if not named_by(field):
                self.read_field(entry.value, message, field, what=repr(entry.key))
        for field in fields.values():
            if named_by(field):
                self.read_lookup(field, message, entries, written.get(field.name))

    def read_lookup(
        self, field: FieldDescriptor, message: Message, entries: Sequence[Entry], written: Entry | None
    ) -> None:
        """The config of the lookup that is named beside it: read even if it is not written, for what it needs."""
        holder = getattr(message, field.name)
        if written is not None:
            holder.SetInParent()
        name = written_lookup(field, entries)
        constructor = self.lookups.get(name.text) if name is not None else None
        if name is None or constructor is None:
            return
        config = constructor.config_type()
        value = written.value if written is not None else None
        self.read_message(value, config, what=f"the config of {name.text}", at=name.at)
        apply_defaults(config)
        pack(config, holder)

    def read_field(self, value: YamlValue, message: Message, field: FieldDescriptor, *, what: str) -> None:
        if is_unresolved(value):
            return
        if is_secret(field):
            value = conceal(value)
        if is_map(field):
            self.read_map(value, getattr(message, field.name), field, what=what)
        elif field.is_repeated and has_option(field, options_pb2.ordered_map) and isinstance(value, YamlMap):
            self.read_ordered_map(value, getattr(message, field.name), field, what=what)
        elif field.is_repeated:
            self.read_list(value, getattr(message, field.name), field, what=what)
        elif field.message_type is not None:
            nested = getattr(message, field.name)
            nested.SetInParent()
            self.read_message(value, nested, what=what, at=value.at)
        else:
            single = self.read_scalar(value, field, what=what)
            if single is not None:
                setattr(message, field.name, single)

    def read_list(self, value: YamlValue, items: Any, field: FieldDescriptor, *, what: str) -> None:
        if not isinstance(value, YamlList):
            form = "a mapping or a list" if has_option(field, options_pb2.ordered_map) else "a list"
            suggestion = f"[{value.written}]" if isinstance(value, Scalar) and field.message_type is None else None
            self.mistakes.add(
                f"{what} must be {form}, not {describe(value)}",
                at=value.at,
                value=shown(value),
                suggestion=suggestion,
            )
            return
        for index, item in enumerate(value.items):
            name = f"{what}[{index}]"
            if isinstance(item, Scalar) and item.is_null and not accepts_null(field):
                self.mistakes.add(f"{name} is empty", at=item.at)
            elif field.message_type is not None:
                self.read_message(item, items.add(), what=name, at=item.at)
            else:
                single = self.read_scalar(item, field, what=name)
                if single is not None:
                    items.append(single)

    def read_ordered_map(self, value: YamlMap, items: Any, field: FieldDescriptor, *, what: str) -> None:
        if field.message_type is None or len(field.message_type.fields) != 2:
            raise OptionError(f"field {field.full_name} is an ordered_map, so its message must have two fields")
        key_field, value_field = field.message_type.fields
        for entry in value.entries:
            name = f"{what}, {entry.key!r}"
            item = items.add()
            key = Scalar(at=entry.key_at, text=entry.key, written=entry.key, is_plain=False)
            self.read_field(key, item, key_field, what=name)
            if isinstance(entry.value, Scalar) and entry.value.is_null and not accepts_null(value_field):
                self.mistakes.add(f"{name} is empty", at=entry.key_at)
            else:
                self.read_field(entry.value, item, value_field, what=name)

    def read_map(self, value: YamlValue, items: Any, field: FieldDescriptor, *, what: str) -> None:
        if not isinstance(value, YamlMap):
            self.mistakes.add(f"{what} must be a mapping, not {describe(value)}", at=value.at, value=shown(value))
            return
        assert field.message_type is not None
        key_field, value_field = field.message_type.fields
        for entry in value.entries:
            name = f"{what}, {entry.key!r}"
            # A number or boolean as a key is text in YAML's and in JSON's form alike.
            is_plain = key_field.type != _F.TYPE_STRING
            key = Scalar(at=entry.key_at, text=entry.key, written=entry.key, is_plain=is_plain)
            map_key = self.read_scalar(key, key_field, what=f"the key {entry.key!r} of {what}")
            if map_key is None:
                continue
            if value_field.message_type is not None:
                self.read_message(entry.value, items[map_key], what=name, at=entry.key_at)
                continue
            single = self.read_scalar(entry.value, value_field, what=name)
            if single is not None:
                items[map_key] = single

    def read_scalar(self, value: YamlValue, field: FieldDescriptor, *, what: str) -> Any:
        kind = field.cpp_type
        for option, read in ((options_pb2.duration, read_duration_us), (options_pb2.size, read_size)):
            if has_option(field, option):
                if kind != _F.CPPTYPE_INT64:
                    raise OptionError(f"field {field.full_name} is a {option.name}, so it must be an int64")
                return self.within(read(value, what, self.mistakes), value, field, what=what)
        if kind in INT_RANGES:
            least, greatest = INT_RANGES[kind]
            whole = read_int(value, what, self.mistakes, least=least, greatest=greatest)
            return self.within(whole, value, field, what=what)
        if kind in (_F.CPPTYPE_FLOAT, _F.CPPTYPE_DOUBLE):
            number = read_float(value, what, self.mistakes, is_single=kind == _F.CPPTYPE_FLOAT)
            return self.within(number, value, field, what=what)
        if kind == _F.CPPTYPE_BOOL:
            return read_bool(value, what, self.mistakes)
        if kind == _F.CPPTYPE_ENUM:
            assert field.enum_type is not None
            return self.read_enum(value, field.enum_type, what=what)
        if field.type == _F.TYPE_BYTES:
            return read_base64(value, what, self.mistakes)
        if has_option(field, options_pb2.sql) and isinstance(value, Scalar) and value.given:
            return quote_given(value, what, self.mistakes)
        text = read_string(value, what, self.mistakes)
        choices = choices_of(field, options_pb2.choices)
        # An empty text is what is not written: `${FORMAT:-}`.
        if not text or choices is None or text.lower() in choices.values_by_name:
            return text
        self.add_choices(value, choices.values_by_name, what=what)
        return None

    def within(self, number: Any, value: YamlValue, field: FieldDescriptor, *, what: str) -> Any:
        """The number, unless it is out of the range that the field declares."""
        bounds = ((options_pb2.least, "at least", 1), (options_pb2.greatest, "at most", -1))
        for option, words, sign in bounds:
            bound = limit(field, option)
            if number is None or bound is None or sign * number >= sign * bound:
                continue
            shown_bound = "more than zero" if (bound, sign) == (1, 1) else f"{words} {format_limit(field, bound)}"
            self.mistakes.add(f"{what} must be {shown_bound}", at=value.at, value=shown(value))
            return None
        return number

    def read_enum(self, value: YamlValue, enum: EnumDescriptor, *, what: str) -> int | None:
        names = enum_names(enum)
        if is_unresolved(value):
            return None
        if isinstance(value, Scalar):
            number = value.typed_value
            if isinstance(number, int) and not isinstance(number, bool) and number in names.values():
                return number
            word = value.text.lower()
            full = {known.name.lower(): known.number for known in enum.values if known.number in names.values()}
            found = names.get(word, full.get(word))
            if found is not None:
                return found
        self.add_choices(value, names, what=what)
        return None

    def add_choices(self, value: YamlValue, names: Iterable[str], *, what: str) -> None:
        known = tuple(names)
        self.mistakes.add(
            f"{what} must be one of {', '.join(known)}, not {describe(value)}",
            at=value.at,
            value=shown(value),
            allowed=known,
            suggestion=nearest(value.written, known) if isinstance(value, Scalar) else None,
        )


def _is_blank(value: YamlValue) -> bool:
    """Whether it is a text without anything in it: `${EXPRESSION:-}`."""
    return isinstance(value, Scalar) and value.typed_value == ""


def _is_empty(value: YamlValue) -> bool:
    if isinstance(value, Scalar):
        return value.is_null or not value.text.strip()
    return not (value.items if isinstance(value, YamlList) else value.entries)
