"""The parts of an aggregate that DataFusion's Python classes do not show, read out of its protobuf form."""

from __future__ import annotations

from dataclasses import dataclass

from datafusion import Expr, SessionContext

from arroyo_sql.planner.expressions import wrap

#: Numbers of fields in `datafusion.proto`: of LogicalExprNode, AggregateUDFExprNode and SortExprNode.
_AGGREGATE, _FILTER, _ORDER = 19, 3, 4
_SORT_EXPRESSION, _SORT_ASCENDING, _SORT_NULLS_FIRST = 1, 2, 3


@dataclass(frozen=True, slots=True)
class SortKey:
    expression: Expr
    is_ascending: bool
    is_null_first: bool


@dataclass(frozen=True, slots=True)
class Extras:
    """FILTER (WHERE ...) and ORDER BY of an aggregate."""

    condition: Expr | None = None
    order: tuple[SortKey, ...] = ()


def extras_of(aggregate: Expr, context: SessionContext) -> Extras | None:
    """What is hidden in an aggregate; None where its protobuf form cannot be had or does not say what its text says."""
    text = aggregate.canonical_name()
    has_filter, has_order = " FILTER (WHERE " in text, " ORDER BY [" in text
    if not has_filter and not has_order:
        return Extras()
    try:
        node = _message(dict(_fields(aggregate.to_bytes())), _AGGREGATE)
        parts = list(_fields(node))
        conditions = [value for number, value in parts if number == _FILTER and isinstance(value, bytes)]
        order = [_sort_key(value, context) for number, value in parts if number == _ORDER and isinstance(value, bytes)]
        condition = _expression(conditions[0], context) if conditions else None
    # DataFusion raises bare exceptions for what it cannot encode, such as a function of Python.
    except Exception:
        return None
    if (condition is not None) != has_filter or bool(order) != has_order:
        return None
    return Extras(condition, tuple(order))


def _sort_key(data: bytes, context: SessionContext) -> SortKey:
    fields = dict(_fields(data))
    expression = _expression(_message(fields, _SORT_EXPRESSION), context)
    return SortKey(expression, bool(fields.get(_SORT_ASCENDING, 0)), bool(fields.get(_SORT_NULLS_FIRST, 0)))


def _expression(data: bytes, context: SessionContext) -> Expr:
    return wrap(Expr.from_bytes(data, context))


def _message(fields: dict[int, int | bytes], number: int) -> bytes:
    found = fields[number]
    if not isinstance(found, bytes):
        raise ValueError(f"field {number} is not a message")
    return found


def _fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """The fields of a protobuf message by number, as they are on the wire."""
    found: list[tuple[int, int | bytes]] = []
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind, number = tag & 7, tag >> 3
        if kind == 0:
            value, at = _varint(data, at)
            found.append((number, value))
            continue
        if kind == 2:
            size, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field of wire type {kind}")
        found.append((number, data[at : at + size]))
        at += size
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
