"""JSON objects, one for each row, typed by the schema; fields outside it are ignored."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from arroyo_core.api.json_depth import json_depth
from arroyo_core.api.limits import VALUE_DEPTH
from arroyo_core.errors import ConfigError
from arroyo_formats.format import Indices
from arroyo_formats.text.salvage import Look, Texts, is_blank
from arroyo_formats.text.schema_parser import SchemaParser
from arroyo_formats.text.timestamps import ISO, UTC, TimeTexts, Writing, as_times

#: How much of some texts shows how their timestamps are written.
SAMPLE_BYTES = 2**13
_OPEN, _CLOSE, _LINE_FEED, _RETURN = b"{}\n\r"


class JsonParser(SchemaParser):
    """Parses JSON objects. Arrow reads zoned and naive timestamps alike (as UTC)."""

    def __init__(
        self, schema: pa.Schema, *, unit: str = "line", skips_blank: bool = True, times: TimeTexts | None = None
    ) -> None:
        text = Writing.ZONED if times is None or (times.zone == UTC and not times.timestamp_formats) else Writing.MIXED
        super().__init__(schema, [text, Writing.NUMBER], times)
        self._reads_nested = text is Writing.MIXED
        self.unit = unit
        self._skips_blank = skips_blank

    def look(self, texts: Texts) -> Look:
        """All must begin with `{` and end with `}`: then no object spans two, and counting tells the rest.

        A text that is but the word null would also crash Arrow.
        """
        blank: list[int] = []
        bad: dict[int, str] = {}
        for index in _shapeless(texts).tolist():
            text = texts.text(index)
            if not is_blank(text):
                if not _is_framed(text):
                    bad[index] = "it is not a JSON object, which begins with { and ends with }"
            elif self._skips_blank:
                blank.append(index)
            else:
                bad[index] = f"the {self.unit} is empty"
        return Look(blank=blank, bad=bad)

    def groups(self, texts: Texts) -> Sequence[Indices]:
        """By whether timestamps are numbers or texts, as it seems: Arrow reads one of both in a column."""
        values = texts.array()
        found = np.zeros(len(texts), dtype=np.int64)
        for key in sorted({self._key(name) for name in self._writings}):
            pattern = rf"{re.escape(json.dumps(key, ensure_ascii=False))}\s*:\s*[-0-9]"
            is_number = pc.match_substring_regex(values, pattern).to_numpy(zero_copy_only=False)
            # Back to dense numbers, or many columns would overflow.
            found = np.unique(2 * found + is_number, return_inverse=True)[1]
        return [np.flatnonzero(found == group) for group in range(int(found.max(initial=0)) + 1)]

    def suspects(self, texts: Texts) -> Sequence[int]:
        """Those that another parser refuses, which is quick with single ones."""
        decoder = msgspec.json.Decoder(self._object_type())
        found = []
        for index in range(len(texts)):
            try:
                decoder.decode(texts.text(index))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                found.append(index)
        return found

    def _object_type(self) -> Any:
        return object_type(self._schema)

    def _read(self, data: bytes, types: Mapping[str, pa.DataType]) -> pa.Table:
        # Arrow takes any bytes for a string, and would fail much later.
        data.decode("utf-8")
        return read_json(data, pa.schema(list(types.items())))

    def _sample(self, data: bytes) -> bytes:
        """The first lines: texts of which some have numbers there and others have not are parsed apart."""
        end = data.find(b"\n", SAMPLE_BYTES) + 1
        return data[:end] if end else data

    def _physical(self, kind: pa.DataType) -> pa.DataType:
        return _as_written(kind, has_timestamps=self._reads_nested)


def object_type(fields: Iterable[pa.Field]) -> Any:
    """The objects that have these fields, as far as msgspec can tell; it may take too many for good."""
    columns = list(fields)
    # Names of columns may be anything, those of attributes may not.
    names = {f"column_{place}": field.name for place, field in enumerate(columns)}
    types = [(name, _value_type(field.type) | None, None) for name, field in zip(names, columns, strict=True)]
    return msgspec.defstruct("Object", types, rename=names)


def _value_type(kind: pa.DataType) -> Any:
    if pa.types.is_boolean(kind):
        return bool
    if pa.types.is_integer(kind):
        is_signed = pa.types.is_signed_integer(kind)
        bits = kind.bit_width - is_signed
        # Limits of 64 bits are more than msgspec takes.
        limits = msgspec.Meta(ge=-(2**bits) if is_signed else 0, le=2**bits - 1) if bits < 63 else msgspec.Meta()
        return Annotated[int, limits]
    if pa.types.is_floating(kind):
        return float
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return str
    if pa.types.is_list(kind):
        return list[_value_type(kind.value_type) | None]  # type: ignore[misc]
    return object_type(kind) if pa.types.is_struct(kind) else Any


def infer_schema(data: bytes, times: TimeTexts = ISO) -> pa.Schema:
    """The columns and types of some lines; raises `ArrowInvalid`."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        # Of values Arrow says so itself, of names it does not.
        raise pa.ArrowInvalid(f"line {1 + data.count(_LINE_FEED, 0, error.start)}: {error}") from error
    texts = Texts.of_lines(data, quote_aware=False)
    look = JsonParser(pa.schema([])).look(texts)
    if look.bad:
        raise pa.ArrowInvalid(f"line {min(look.bad) + 1}: {look.bad[min(look.bad)]}")
    # Arrow recurses to infer types, and overflows the stack; with a schema it does not.
    for index in range(len(texts)):
        problem = VALUE_DEPTH.problem(json_depth(texts.text(index)))
        if problem is not None:
            raise pa.ArrowInvalid(f"line {index + 1}: {problem}")
    return as_times(read_json(data, None), times)


def check_type(name: str, kind: pa.DataType) -> None:
    """Raises `ConfigError` for a type that JSON cannot be read as."""
    if pa.types.is_map(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise ConfigError(
            f"column {name!r}: json cannot be read as {kind}; declare it as a struct or a string",
            field=f"schema.{name}",
            value=str(kind),
        )
    for index in range(kind.num_fields):
        check_type(name, kind.field(index).type)


def read_json(data: bytes, schema: pa.Schema | None) -> pa.Table:
    """The objects as columns of the schema, or of the one they suggest; raises `ArrowInvalid`."""
    return pj.read_json(
        pa.BufferReader(data),
        # One block, so that a line of any length fits and nothing is split.
        read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pj.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else "ignore"
        ),
    )


def _shapeless(texts: Texts) -> Indices:
    """Texts that do not plainly begin and end as objects; most of them have white space around."""
    codes = np.frombuffer(texts.data, dtype=np.uint8)
    if not len(codes):
        return np.arange(len(texts))
    starts = np.concatenate([[0], texts.ends[:-1]])
    last = texts.ends - 1
    for line_end in (_LINE_FEED, _RETURN):
        last = last - ((codes[last] == line_end) & (last > starts))
    return np.flatnonzero((codes[starts] != _OPEN) | (codes[last] != _CLOSE))


def _is_framed(text: bytes) -> bool:
    text = text.strip(b" \t\r\n")
    return text[:1] == b"{" and text[-1:] == b"}"


def _as_written(kind: pa.DataType, *, has_timestamps: bool) -> pa.DataType:
    """Dates and times of day are strings in JSON, which Arrow does not know; with formats, timestamps as well."""
    if pa.types.is_date(kind) or pa.types.is_time(kind) or (has_timestamps and pa.types.is_timestamp(kind)):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_as_written(kind.value_type, has_timestamps=has_timestamps))
    if pa.types.is_struct(kind):
        fields = [(field.name, _as_written(field.type, has_timestamps=has_timestamps)) for field in kind]
        return pa.struct([pa.field(name, written) for name, written in fields])
    return kind
