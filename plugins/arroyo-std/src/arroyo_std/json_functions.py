"""Functions over JSON texts, for SQL: whole columns in, whole columns out.

A text that is not JSON is NULL to them, and so is a value that is not there. JSON's own null is a value: it is
there (`json_contains`), but as a text, a number or a boolean it is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.errors import DataError
from arroyo_std.json_path import JsonPath, JsonPathError, parse_path
from arroyo_std.json_texts import Found, array_of, compact, finder, object_of, text_of, whole

_LIST = pa.list_(pa.string())
_INTEGER = r"^-?[0-9]{1,18}$"
#: Longer ones may not fit in 64 bits.
_LONG_INTEGER = r"^-?[0-9]{19,20}$"
_NUMBER = r"^-?[0-9]"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFunction:
    """A function of a JSON text and of a place in it; without one it is of the whole text."""

    name: str
    #: Made of the texts of values, as they are written, and null where there is none.
    convert: Callable[[pa.Array], pa.Array]
    return_type: pa.DataType
    description: str
    #: `key`: a name or a number; `path`: a JSONPath; empty: none.
    place: str = "key"

    @property
    def signature(self) -> str:
        """For people."""
        places = {"key": "json, key, ...", "path": "json, path", "": "json [, key, ...]"}
        return f"{self.name}({places[self.place]})"

    @property
    def types(self) -> list[pa.DataType]:
        """What SQL calls it with."""
        return [pa.string()] * (2 if self.place else 1)

    def evaluate(self, texts: pa.Array, places: pa.Array | None = None) -> pa.Array:
        """The results, one for each row. Raises `DataError` for a path that cannot be read."""
        if not len(texts):
            return pa.array([], self.return_type)
        if places is None:
            return self.convert(
                pa.array([None if each is None else whole(each) for each in texts.to_pylist()], pa.binary())
            )
        if self.place == "path":
            return self.convert(_at_paths(texts, places, is_first=self.return_type != _LIST))
        found = self.convert(_at_keys(texts, places))
        return pc.if_else(pc.and_(texts.is_valid(), places.is_valid()), found, pa.scalar(None, found.type))


def check_path(text: str) -> str | None:
    """Why a text is not a JSONPath; None if it is one."""
    try:
        parse_path(text)
    except JsonPathError as error:
        return str(error)
    return None


def _at_keys(texts: pa.Array, keys: pa.Array) -> pa.Array:
    """The values under these keys, in binary; they are found one by one, which a constant key makes fast."""
    constant = _constant(keys)
    if constant is not None:
        find = finder(constant)
        found: list[Found] = [None if text is None else find(text) for text in texts.to_pylist()]
        return pa.array(found, pa.binary())
    pairs = zip(texts.to_pylist(), keys.to_pylist(), strict=True)
    return pa.array([None if None in (text, key) else finder(key)(text) for text, key in pairs], pa.binary())


def _at_paths(texts: pa.Array, paths: pa.Array, *, is_first: bool) -> pa.Array:
    parsed: dict[str, JsonPath] = {}
    for path in pc.unique(paths).to_pylist():
        if path is not None:
            try:
                parsed[path] = parse_path(path)
            except JsonPathError as error:
                raise DataError(str(error)) from error
    found: list[Any] = [
        None
        if text is None or path is None
        else parsed[path].find_first(text)
        if is_first
        else _texts(parsed[path].find(text))
        for text, path in zip(texts.to_pylist(), paths.to_pylist(), strict=True)
    ]
    return pa.array(found, pa.binary() if is_first else _LIST)


def _constant(keys: pa.Array) -> str | None:
    """The only value of a column."""
    first = keys[0]
    if keys.null_count or not pc.all(pc.equal(keys, first)).as_py():
        return None
    constant: str = first.as_py()
    return constant


def _texts(values: list[bytes] | None) -> list[str] | None:
    return None if values is None else [compact(each).decode() for each in values]


def _where(mask: pa.Array, values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values where the mask is true, cast; null elsewhere."""
    return pc.if_else(mask, values, pa.scalar(None, values.type)).cast(kind)


def _json(values: pa.Array) -> pa.Array:
    return pa.array([None if each is None else compact(each) for each in values.to_pylist()], pa.binary()).cast(
        pa.string()
    )


def _json_or_empty(values: pa.Array) -> pa.Array:
    return _json(values).fill_null("")


def _string(values: pa.Array) -> pa.Array:
    found = [text_of(each) if each is not None and each[:1] == b'"' else None for each in values.to_pylist()]
    return pa.array(found, pa.string())


def _as_text(values: pa.Array) -> pa.Array:
    return pa.array([_characters(each) for each in values.to_pylist()], pa.string())


def _characters(value: Found) -> str | None:
    if value is None or value == b"null":
        return None
    return text_of(value) if value[:1] == b'"' else compact(value).decode()


def _integer(values: pa.Array) -> pa.Array:
    texts = _scalars(values)
    found = _where(pc.match_substring_regex(texts, _INTEGER), texts, pa.int64())
    is_long = pc.match_substring_regex(texts, _LONG_INTEGER)
    if not pc.any(is_long).as_py():
        return found
    numbers = [int(text) if long else None for text, long in zip(texts.to_pylist(), is_long.to_pylist(), strict=True)]
    fitting = [each if each is not None and -(2**63) <= each < 2**63 else None for each in numbers]
    return pc.coalesce(found, pa.array(fitting, pa.int64()))


def _float(values: pa.Array) -> pa.Array:
    texts = _scalars(values)
    found = _where(pc.match_substring_regex(texts, _NUMBER), texts, pa.float64())
    return pc.if_else(pc.is_finite(found), found, pa.scalar(None, pa.float64()))


def _boolean(values: pa.Array) -> pa.Array:
    texts = _scalars(values)
    is_true = pc.equal(texts, "true")
    return pc.if_else(pc.or_(is_true, pc.equal(texts, "false")), is_true, pa.scalar(None, pa.bool_()))


def _scalars(values: pa.Array) -> pa.Array:
    """As texts, but for objects and arrays, which may be long."""
    return values.cast(pa.string())


def _length(values: pa.Array) -> pa.Array:
    return pa.array([_count(each) for each in values.to_pylist()], pa.int64())


def _count(value: Found) -> int | None:
    if value is None or value[:1] not in (b"{", b"["):
        return None
    parts = object_of(value) if value[:1] == b"{" else array_of(value)
    return None if parts is None else len(parts)


def _keys(values: pa.Array) -> pa.Array:
    objects = [None if each is None else object_of(each) for each in values.to_pylist()]
    return pa.array([None if each is None else list(each) for each in objects], _LIST)


def _elements(values: pa.Array) -> pa.Array:
    arrays = [None if each is None else array_of(each) for each in values.to_pylist()]
    return pa.array([None if each is None else _texts([bytes(part) for part in each]) for each in arrays], _LIST)


def _is_there(values: pa.Array) -> pa.Array:
    return values.is_valid()


def _as_is(values: pa.Array) -> pa.Array:
    return values


def _listed(functions: Sequence[JsonFunction]) -> Mapping[str, JsonFunction]:
    return {each.name: each for each in functions}


_JSON_TEXT = "the JSON text of the value, without blanks between its parts"

JSON_FUNCTIONS: Mapping[str, JsonFunction] = _listed(
    [
        JsonFunction(name="json_get", convert=_json, return_type=pa.string(), description=f"{_JSON_TEXT}; also `->`"),
        JsonFunction(name="json_get_json", convert=_json, return_type=pa.string(), description=_JSON_TEXT),
        JsonFunction(
            name="json_get_or_empty",
            convert=_json_or_empty,
            return_type=pa.string(),
            description="the same, and an empty text where there is no such value: what it is in is asked of next",
        ),
        JsonFunction(
            name="json_get_str", convert=_string, return_type=pa.string(), description="the value, if it is a text"
        ),
        JsonFunction(
            name="json_get_int",
            convert=_integer,
            return_type=pa.int64(),
            description="the value, if it is a whole number of 64 bits, written without point and exponent",
        ),
        JsonFunction(
            name="json_get_float", convert=_float, return_type=pa.float64(), description="the value, if it is a number"
        ),
        JsonFunction(
            name="json_get_bool", convert=_boolean, return_type=pa.bool_(), description="the value, if it is a boolean"
        ),
        JsonFunction(
            name="json_get_array",
            convert=_elements,
            return_type=_LIST,
            description="the JSON texts of the elements, if it is an array",
        ),
        JsonFunction(
            name="json_as_text",
            convert=_as_text,
            return_type=pa.string(),
            description="the characters of a text, the JSON text of any other value; also `->>`",
        ),
        JsonFunction(
            name="json_contains",
            convert=_is_there,
            return_type=pa.bool_(),
            description="whether there is such a value, were it null; also `?`",
        ),
        JsonFunction(
            name="json_length",
            convert=_length,
            return_type=pa.int64(),
            description="how many elements an array or an object has",
            place="",
        ),
        JsonFunction(
            name="json_object_keys",
            convert=_keys,
            return_type=_LIST,
            description="the names in an object, in order",
            place="",
        ),
        JsonFunction(
            name="get_first_json_object",
            convert=_json,
            return_type=pa.string(),
            description="the JSON text of the first value at a JSONPath",
            place="path",
        ),
        JsonFunction(
            name="get_json_objects",
            convert=_as_is,
            return_type=_LIST,
            description="the JSON texts of all values at a JSONPath; the same as `extract_json`",
            place="path",
        ),
        JsonFunction(
            name="extract_json",
            convert=_as_is,
            return_type=_LIST,
            description="the JSON texts of all values at a JSONPath",
            place="path",
        ),
        JsonFunction(
            name="extract_json_string",
            convert=_string,
            return_type=pa.string(),
            description="the first value at a JSONPath, if it is a text",
            place="path",
        ),
    ]
)
