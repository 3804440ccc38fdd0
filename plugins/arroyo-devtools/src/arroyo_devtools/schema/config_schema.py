"""JSON Schema for the configs of operators, made from their protobuf messages as `pipeline/config.py` reads them."""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from arroyo_core.api.config_defaults import EMPTY_MESSAGE, default_text, default_value
from arroyo_core.pipeline import scalar_schemas as scalars
from arroyo_core.pipeline.field_options import (
    INT_RANGES,
    accepts_null,
    enum_names,
    has_default,
    has_option,
    has_unit,
    is_map,
    limit,
    writable_fields,
)
from arroyo_core.pipeline.lookup_configs import named_by
from arroyo_core.pipeline.scalar_schemas import Schema, nullable
from arroyo_core.pipeline.secret_fields import is_secret
from arroyo_core.pipeline.wellknown import WELL_KNOWN
from arroyo_core.proto import options_pb2
from arroyo_devtools.schema.field_docs import (
    default_words,
    field_choices,
    is_any_value,
    offering_hook,
    suggestions_name,
)
from arroyo_devtools.schema.offers import Offer, Offers
from arroyo_devtools.schema.prose import read_field_text

_F = FieldDescriptor
_PACKAGE = "google.protobuf."
#: Beyond these, limits come from the type alone and would only be noise.
_SMALL_TYPES = (_F.CPPTYPE_INT32, _F.CPPTYPE_UINT32)


class ConfigSchemas:
    """Makes schemas of messages; what lists and recursion refer to is collected in `definitions`."""

    def __init__(self, comments: Mapping[str, str], offers: Offers, definitions: dict[str, Schema]) -> None:
        self._comments = comments
        self._offers = offers
        self._definitions = definitions

    def config(self, descriptor: Descriptor) -> Schema:
        """The schema of a whole config."""
        if descriptor.full_name in WELL_KNOWN:
            return _well_known(descriptor)
        return self._message(descriptor, ())

    def needs_config(self, descriptor: Descriptor) -> bool:
        """Whether a node cannot do without a config."""
        return descriptor.full_name not in WELL_KNOWN and bool(_required(descriptor))

    def _message(self, descriptor: Descriptor, above: tuple[str, ...]) -> Schema:
        fields = writable_fields(descriptor)
        inside = (*above, descriptor.full_name)
        properties = {name: self._described(field, inside) for name, field in fields.items()}
        # The other spelling that protobuf's JSON form has: accepted, and not proposed.
        others = {f"^{field.json_name}$": properties[name] for name, field in fields.items() if field.json_name != name}
        schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
        if others:
            schema["patternProperties"] = others
        schema |= _required_keywords(descriptor) | _exclusions(descriptor)
        for field in fields.values():
            if named_by(field):
                schema["allOf"] = [*schema.get("allOf", []), *self._lookup_configs(field)]
        return schema

    def _lookup_configs(self, field: FieldDescriptor) -> list[Schema]:
        """What a field holds that is the config of a lookup, for each lookup that may be named beside it."""
        name = named_by(field)
        return [
            {
                "if": {"required": [name], "properties": {name: scalars.one_of([offer.name], [])}},
                "then": {"properties": {field.name: {"$ref": f"#/definitions/{self._lookup_config(offer)}"}}},
            }
            for offer in self._offers.lookups()
        ]

    def _lookup_config(self, offer: Offer) -> str:
        name = offer.descriptor.full_name
        if name not in self._definitions:
            self._definitions[name] = {}
            made = ConfigSchemas(offer.comments, self._offers, self._definitions)
            self._definitions[name] = made.config(offer.descriptor)
        return name

    def _described(self, field: FieldDescriptor, above: tuple[str, ...]) -> Schema:
        text = read_field_text(self._comments.get(field.full_name, ""))
        is_required = has_option(field, options_pb2.required)
        schema = self._field(field, above, is_required=is_required)
        if not is_required or accepts_null(field):
            schema = nullable(schema)
        words = default_words(field, text)
        shown = f"{text.description}\n\nDefault: {words}." if words else text.description
        described = {"description": shown, "markdownDescription": shown} if shown else {}
        hidden: Schema = {"writeOnly": True} if is_secret(field) else {}
        return {**described, **schema, **_default(field), **hidden}

    def _field(self, field: FieldDescriptor, above: tuple[str, ...], *, is_required: bool) -> Schema:
        if is_map(field):
            assert field.message_type is not None
            values = self._item(field.message_type.fields[1], above)
            return {"type": "object", "additionalProperties": values} | ({"minProperties": 1} if is_required else {})
        if field.is_repeated:
            return self._list(field, above, is_required=is_required)
        if is_any_value(field) and suggestions_name(field):
            return self._text_or_mapping(field)
        if field.message_type is not None:
            return self._nested(field.message_type, above)
        return self._scalar(field, is_required=is_required)

    def _text_or_mapping(self, field: FieldDescriptor) -> Schema:
        choices, _ = field_choices(field, self._comments, self._offers)
        names, descriptions = [each.name for each in choices], [each.description for each in choices]
        hook = offering_hook(field)
        if not hook:
            schema = scalars.suggestions(names, descriptions)
            return {**schema, "anyOf": [*schema["anyOf"], {"type": "object"}]}
        schema = scalars.one_of(names, descriptions, others=[""])
        return {**schema, "anyOf": [*schema["anyOf"], {"$ref": f"#/definitions/{self._offered(hook)}"}]}

    def _offered(self, hook: str) -> str:
        """The definition of a mapping with the name of something that a hook gives, and its settings."""
        if hook not in self._definitions:
            offers = self._offers.of(hook)
            name = scalars.one_of([each.name for each in offers], [each.text.summary for each in offers])
            settings = [
                {
                    "if": {"required": ["name"], "properties": {"name": scalars.one_of([offer.name], [])}},
                    "then": self._settings(offer),
                }
                for offer in offers
            ]
            self._definitions[hook] = {
                "type": "object",
                "properties": {"name": name},
                "required": ["name"],
                "allOf": settings,
            }
        return hook

    def _settings(self, offer: Offer) -> Schema:
        schema = ConfigSchemas(offer.comments, self._offers, self._definitions).config(offer.descriptor)
        return {**schema, "properties": {"name": {}, **schema["properties"]}}

    def _list(self, field: FieldDescriptor, above: tuple[str, ...], *, is_required: bool) -> Schema:
        schema: Schema = {"type": "array", "items": self._item(field, above)}
        if is_required:
            schema["minItems"] = 1
        if has_option(field, options_pb2.ordered_map):
            assert field.message_type is not None
            value = field.message_type.fields[1]
            schema |= {"type": ["object", "array"], "additionalProperties": self._item(value, above)}
            if is_required:
                schema["minProperties"] = 1
        return schema

    def _item(self, field: FieldDescriptor, above: tuple[str, ...]) -> Schema:
        """One element of a list, or one value of a map."""
        message = field.message_type
        if message is None:
            return self._scalar(field)
        return _well_known(message) if message.full_name in WELL_KNOWN else self._referred(message, above)

    def _nested(self, message: Descriptor, above: tuple[str, ...]) -> Schema:
        if message.full_name in WELL_KNOWN:
            return _well_known(message)
        return self._referred(message, above) if message.full_name in above else self._message(message, above)

    def _referred(self, message: Descriptor, above: tuple[str, ...]) -> Schema:
        name = message.full_name
        if name not in self._definitions:
            # Taken before it is made: the message may hold itself.
            self._definitions[name] = {}
            self._definitions[name] = self._message(message, above)
        return {"$ref": f"#/definitions/{name}"}

    def _scalar(self, field: FieldDescriptor, *, is_required: bool = False) -> Schema:
        least, greatest = limit(field, options_pb2.least), limit(field, options_pb2.greatest)
        choices, is_open = field_choices(field, self._comments, self._offers)
        if choices:
            names, descriptions = [each.name for each in choices], [each.description for each in choices]
            if is_open:
                return scalars.suggestions(names, descriptions, is_required=is_required)
            return scalars.one_of(names, descriptions, others=_other_names(field))
        if has_option(field, options_pb2.duration):
            return scalars.duration(is_positive=least is not None and least > 0)
        if has_option(field, options_pb2.size):
            return scalars.size(least=least, greatest=greatest)
        kind = field.cpp_type
        if kind in INT_RANGES:
            type_least, type_greatest = INT_RANGES[kind]
            if least is None and (kind in _SMALL_TYPES or type_least == 0):
                least = type_least
            if greatest is None and kind in _SMALL_TYPES:
                greatest = type_greatest
            return scalars.whole_number(least=least, greatest=greatest)
        if kind in (_F.CPPTYPE_FLOAT, _F.CPPTYPE_DOUBLE):
            return scalars.decimal_number(least=least, greatest=greatest)
        if kind == _F.CPPTYPE_BOOL:
            return scalars.boolean()
        return scalars.base64() if field.type == _F.TYPE_BYTES else scalars.text(is_required=is_required)


def _other_names(field: FieldDescriptor) -> list[str | int]:
    """What the planner accepts in an enum beside the short names: full names and numbers."""
    enum = field.enum_type
    if enum is None:
        return [""]
    numbers = set(enum_names(enum).values())
    return [*(value.name for value in enum.values if value.number in numbers), *sorted(numbers)]


def _required(descriptor: Descriptor) -> list[FieldDescriptor]:
    return [field for field in writable_fields(descriptor).values() if has_option(field, options_pb2.required)]


def _required_keywords(descriptor: Descriptor) -> Schema:
    required = _required(descriptor)
    plain = [field.name for field in required if field.json_name == field.name]
    spelled = [
        {"anyOf": [{"required": [field.name]}, {"required": [field.json_name]}]}
        for field in required
        if field.json_name != field.name
    ]
    return ({"required": plain} if plain else {}) | ({"allOf": spelled} if spelled else {})


def _exclusions(descriptor: Descriptor) -> Schema:
    """Of the fields of a `oneof` only one may be given."""
    pairs = [
        ((first.name, second.name), {"not": {"enum": [None, ""]} if has_default(oneof) else {"type": "null"}})
        for oneof in descriptor.oneofs
        for place, first in enumerate(oneof.fields)
        for second in oneof.fields[place + 1 :]
    ]
    excluded = [
        {"type": "object", "required": [*pair], "properties": dict.fromkeys(pair, written)} for pair, written in pairs
    ]
    return {"not": {"anyOf": excluded}} if excluded else {}


def _well_known(descriptor: Descriptor) -> Schema:
    name = descriptor.full_name.removeprefix(_PACKAGE)
    fixed: dict[str, Schema] = {
        "Struct": {"type": "object"},
        "ListValue": {"type": "array"},
        "Value": {},
        "Any": {"type": "object"},
        "FieldMask": scalars.text(),
        "Timestamp": scalars.moment(),
        "Duration": scalars.duration(),
        "BoolValue": scalars.boolean(),
        "BytesValue": scalars.base64(),
        "StringValue": scalars.text(),
        "DoubleValue": scalars.decimal_number(),
        "FloatValue": scalars.decimal_number(),
    }
    return fixed[name] if name in fixed else scalars.whole_number(least=0 if name.startswith("U") else None)


def _default(field: FieldDescriptor) -> Schema:
    """The default as YAML has it."""
    text = default_text(field)
    if text is None:
        return {}
    if text == EMPTY_MESSAGE and field.message_type is not None:
        return {"default": {}}
    is_number = field.cpp_type in INT_RANGES and not has_unit(field)
    is_float = field.cpp_type in (_F.CPPTYPE_FLOAT, _F.CPPTYPE_DOUBLE)
    if is_number or is_float or field.cpp_type == _F.CPPTYPE_BOOL:
        return {"default": default_value(field)}
    # A number without a unit is a size, and nothing is a duration: both are written as numbers.
    return {"default": int(text) if has_unit(field) and text.isdigit() else text}
