"""JSON texts, and random expressions over them: DuckDB writes each of them otherwise.

DuckDB fails for a text that is not JSON, where functions here give NULL: it is asked first. Numbers are written as
both write them, without needless digits and exponents.
"""

from __future__ import annotations

import random

from .syntax import Expr, Type

INT, FLOAT, DECIMAL, TEXT, BOOL, TIME = Type

#: The column that has them.
COLUMN = "doc"

DOCUMENTS = (
    '{"a": 1, "b": "x", "c": {"a": 7, "d": "deep"}, "l": [1, "t", null]}',
    '{"a": -5, "b": "", "c": {}, "l": []}',
    '{"b": "gift", "a": 2.5, "f": true}',
    '{"a": null, "b": null, "f": false, "l": [{"a": 3}, [2]]}',
    '{"a": "1", "b": 7, "f": null}',
    '{"c": {"d": "it\'s", "a": [1]}, "b": "déjà"}',
    '{"a": {"a": 1}, "b": ["x"], "c": "text"}',
    "{}",
    '[1, {"a": 2}, "b"]',
    "[]",
    "12",
    '"text"',
    "null",
    "not JSON",
    '{"a": 1',
    "",
)
_KEYS = ("a", "b", "c", "d", "f", "l", "none")
#: A second step; a number is the place in an array.
_INNER = ("a", "d", 0, 1, 5)


def json_expression(chance: random.Random, kind: Type, doc: Expr) -> Expr | None:
    """What stands in a JSON text, as a value of the type; None for a type that JSON has no values of."""
    steps: list[str | int] = [chance.choice(_KEYS)]
    if chance.random() < 0.4:
        steps.append(chance.choice(_INNER))
    match kind:
        case Type.INT if chance.random() < 0.3:
            return _length(doc)
        case Type.INT:
            return _typed(chance, "json_get_int", steps, doc, INT, "BIGINT", ("BIGINT", "UBIGINT"))
        case Type.FLOAT:
            return _typed(chance, "json_get_float", steps, doc, FLOAT, "DOUBLE", ("BIGINT", "UBIGINT", "DOUBLE"))
        case Type.BOOL if chance.random() < 0.5:
            return _contains(chance, steps, doc)
        case Type.BOOL:
            return _typed(chance, "json_get_bool", steps, doc, BOOL, "BOOLEAN", ("BOOLEAN",))
        case Type.TEXT:
            return _text(chance, steps, doc)
        case _:
            return None


def _text(chance: random.Random, steps: list[str | int], doc: Expr) -> Expr:
    found = f"json_extract_string({{0}}, '{_path(steps)}')"
    match chance.randrange(4):
        case 0:
            is_text = f"json_type({{0}}, '{_path(steps)}') = 'VARCHAR'"
            return Expr(TEXT, _call("json_get_str", steps), (doc,), _checked(f"CASE WHEN {is_text} THEN {found} END"))
        case 1:
            is_text = f"json_type({{0}}, '{_path(steps)}') = 'VARCHAR'"
            template = f"extract_json_string({{0}}, '{_path(steps)}')"
            return Expr(TEXT, template, (doc,), _checked(f"CASE WHEN {is_text} THEN {found} END"))
        case 2:
            whole = f"CAST(json_extract({{0}}, '{_path(steps)}') AS VARCHAR)"
            return Expr(TEXT, _operators(steps, "->"), (doc,), _checked(whole))
        case _:
            return Expr(TEXT, _operators(steps, "->>"), (doc,), _checked(found))


def _typed(
    chance: random.Random,
    name: str,
    steps: list[str | int],
    doc: Expr,
    kind: Type,
    duckdb: str,
    types: tuple[str, ...],
) -> Expr:
    path = _path(steps)
    wanted = ", ".join(f"'{each}'" for each in types)
    found = f"CAST(json_extract({{0}}, '{path}') AS {duckdb})"
    other = _checked(f"CASE WHEN json_type({{0}}, '{path}') IN ({wanted}) THEN {found} END")
    return Expr(kind, _call(name, steps), (doc,), other)


def _length(doc: Expr) -> Expr:
    lengths = "WHEN 'ARRAY' THEN json_array_length({0}) WHEN 'OBJECT' THEN len(json_keys({0}))"
    return Expr(INT, "json_length({0})", (doc,), _checked(f"CASE json_type({{0}}) {lengths} END"))


def _contains(chance: random.Random, steps: list[str | int], doc: Expr) -> Expr:
    is_there = f"json_exists({{0}}, '{_path(steps)}')"
    other = f"(CASE WHEN {{0}} IS NULL THEN NULL WHEN json_valid({{0}}) THEN {is_there} ELSE FALSE END)"
    if len(steps) == 1 and chance.random() < 0.5:
        return Expr(BOOL, f"({{0}} ? '{steps[0]}')", (doc,), other)
    return Expr(BOOL, _call("json_contains", steps), (doc,), other)


def _call(name: str, steps: list[str | int]) -> str:
    return f"{name}({{0}}, {', '.join(map(_key, steps))})"


def _operators(steps: list[str | int], last: str) -> str:
    *others, end = map(_key, steps)
    return f"({{0}} {''.join(f'-> {each} ' for each in others)}{last} {end})"


def _key(step: str | int) -> str:
    return str(step) if isinstance(step, int) else f"'{step}'"


def _path(steps: list[str | int]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def _checked(template: str) -> str:
    return f"(CASE WHEN json_valid({{0}}) THEN {template} END)"
