"""Whoever sends data chooses neither how deep a parser recurses nor how much memory a schema takes."""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow as pa
import pytest
from arroyo_formats.avro.schema import SchemaError, parse
from arroyo_formats.json.parser import JsonParser, infer_schema
from arroyo_formats.json_schema import JsonSchemaError, arrow_schema
from arroyo_formats.lines import Texts, parse_texts
from arroyo_formats.protobuf.compiling import ProtoError, compile_texts
from arroyo_formats.protobuf.descriptors import find_message
from arroyo_formats.protobuf.shape import fields_of
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api.json_depth import json_depth
from arroyo_core.api.limits import VALUE_DEPTH

DEEP = 20_000
MAX_DEPTH = VALUE_DEPTH.default


def nested(depth: int, inside: bytes = b"") -> bytes:
    """An object that is so deep."""
    return b'{"a": ' + b"[" * (depth - 1) + inside + b"]" * (depth - 1) + b"}"


def in_another_process(code: str) -> str:
    """What some code prints; one that ends its process fails the test and not all tests."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    return done.stdout


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"b":[],"c":'])
def test_columns_are_not_inferred_from_values_that_are_too_deep(opening: str) -> None:
    code = f"""
import pyarrow as pa
from arroyo_formats.json.parser import infer_schema
try:
    infer_schema(b'{{"ok": 1}}\\n{{"a": ' + {opening.encode()!r} * {DEEP} + b'}}\\n')
except pa.ArrowInvalid as error:
    print(error)
"""
    said = in_another_process(code)
    assert "line 2" in said
    assert f"at most {MAX_DEPTH} levels" in said


def test_values_of_the_greatest_depth_are_inferred() -> None:
    assert infer_schema(nested(MAX_DEPTH, b"1") + b"\n").names == ["a"]
    with pytest.raises(pa.ArrowInvalid, match=f"{MAX_DEPTH + 1} are too many"):
        infer_schema(nested(MAX_DEPTH + 1, b"1") + b"\n")


def test_deep_values_of_other_fields_are_read_past_also_beside_bad_lines() -> None:
    """Reading does not recurse: a value that the schema does not name may be anything."""
    lines = [b'{"n": 1}', b'{"n": "x"}', nested(DEEP), b'{"n": 2}', nested(DEEP)[:-1] + b', "n": 3}']
    parsed = parse_texts(
        JsonParser(pa.schema([("n", pa.int64())])), Texts.of_lines(b"\n".join(lines) + b"\n", quote_aware=False)
    )
    assert parsed.batch is not None
    assert parsed.batch.column("n").to_pylist() == [1, None, 2, 3]
    assert list(parsed.bad) == [1]


def test_a_deep_value_of_a_column_is_bad_data() -> None:
    schema = pa.schema([("a", pa.list_(pa.int64()))])
    data = b'{"a": [1]}\n' + nested(DEEP) + b'\n{"a": [2]}\n'
    parsed = parse_texts(JsonParser(schema), Texts.of_lines(data, quote_aware=False))
    assert list(parsed.bad) == [1]
    assert parsed.batch is not None
    assert parsed.batch.num_rows == 2


@given(
    st.recursive(
        st.one_of(st.none(), st.text(alphabet='[]{}"\\a', max_size=6)),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text('[{"\\', max_size=2), inner)),
    )
)
def test_the_depth_is_that_of_the_value(value: object) -> None:
    # Padded beyond the limit, so that the exact count is taken, in front of the value.
    text = json.dumps([[[]] * (MAX_DEPTH + 1), value]).encode()
    assert json_depth(text) == max(3, 1 + depth_of(value))


def depth_of(value: object) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


def test_brackets_in_texts_do_not_hide_depth() -> None:
    text = b'{"a": ' + b'["]]]]\\"]]",' * DEEP + b"1}"
    assert json_depth(text) == DEEP + 1
    assert json_depth(b'{"a": "' + b"[" * DEEP + b'"}') == 1


def doubling_avro(levels: int) -> str:
    """Records of which each has two of the one before: a short text, and twice the types at each level."""
    kind: object = "int"
    fields = []
    for level in range(levels):
        record = {
            "type": "record",
            "name": f"r{level}",
            "fields": [{"name": "a", "type": kind}, {"name": "b", "type": kind}],
        }
        fields.append({"name": f"f{level}", "type": record})
        kind = f"r{level}"
    return json.dumps({"type": "record", "name": "top", "fields": fields})


def chained_avro(levels: int) -> str:
    fields, kind = [], "int"
    for level in range(levels):
        record = {"type": "record", "name": f"r{level}", "fields": [{"name": "a", "type": kind}]}
        fields.append({"name": f"f{level}", "type": record})
        kind = f"r{level}"
    return json.dumps({"type": "record", "name": "top", "fields": fields})


@pytest.mark.parametrize("text", [doubling_avro(40), chained_avro(5_000), '{"type":' * 500 + '"int"' + "}" * 500])
def test_avro_schemas_that_are_too_large_or_too_deep_are_refused(text: str) -> None:
    with pytest.raises(SchemaError, match="too many: at most"):
        parse(text)


def test_json_schemas_that_are_too_large_or_too_deep_are_refused() -> None:
    definitions: dict[str, object] = {"d0": {"type": "string"}}
    for level in range(1, 41):
        refers = {"$ref": f"#/definitions/d{level - 1}"}
        definitions[f"d{level}"] = {"type": "object", "properties": {"a": refers, "b": refers}}
    doubling = {"type": "object", "properties": {"x": {"$ref": "#/definitions/d40"}}, "definitions": definitions}
    with pytest.raises(JsonSchemaError, match="too many: at most"):
        arrow_schema(json.dumps(doubling))
    deep = '{"type":"object","properties":{"a":' * 300 + '{"type":"string"}' + "}}" * 300
    with pytest.raises(JsonSchemaError, match="too many: at most"):
        arrow_schema(deep)


def test_message_types_that_are_too_large_are_refused() -> None:
    messages = ["message M0 { int32 a = 1; }"]
    messages += [f"message M{level} {{ M{level - 1} a = 1; M{level - 1} b = 2; }}" for level in range(1, 40)]
    compiled = compile_texts({"m.proto": 'syntax = "proto3";\n' + "\n".join(messages)}, "m.proto")
    with pytest.raises(ProtoError, match="too many: at most"):
        fields_of(find_message(compiled, "M39"), "us")
