"""Makes a query smaller for as long as it stays wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from .syntax import Derived, Dialect, Expr, Join, Query, Select, Top, Type, Union

#: More attempts than this are not worth the wait.
MOST_ATTEMPTS = 400

_SIMPLEST = {
    Type.INT: ("1", "NULL"),
    Type.FLOAT: ("0.5",),
    Type.DECIMAL: (),
    Type.TEXT: ("'a'",),
    Type.BOOL: ("TRUE", "FALSE"),
    Type.TIME: (),
}


def shrink(query: Query, is_wrong: Callable[[Query], bool]) -> Query:
    """A query, made of parts of this one, of which no part can be left out."""
    attempts = 0
    while attempts < MOST_ATTEMPTS:
        for smaller in sorted(_smaller(query), key=_length):
            if _length(smaller) >= _length(query):
                continue
            attempts += 1
            if attempts > MOST_ATTEMPTS:
                break
            if is_wrong(smaller):
                query = smaller
                break
        else:
            return query
    return query


def _length(query: Query) -> int:
    return len(query.text(Dialect.OURS))


def _smaller(query: Query) -> Iterator[Query]:
    match query:
        case Union():
            yield query.left
            yield query.right
        case Top():
            yield query.query
        case Select(relation=Derived(query=inner)):
            yield inner
    yield from _variants(query)


def _variants(node: Any) -> Iterator[Any]:
    """The same node with one part left out, or a smaller one in its place."""
    match node:
        case Expr():
            yield from _smaller_expressions(node)
            return
        case Join():
            # What refers to the other side makes no sense then, and is not tried for long.
            yield node.left
            yield node.right
        case Derived(query=Select(relation=inner)):
            yield inner
    for field in dataclasses.fields(node):
        for value in _values(field, getattr(node, field.name)):
            yield dataclasses.replace(node, **{field.name: value})


def _values(field: dataclasses.Field[Any], value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for place, each in enumerate(value):
            if len(value) > 1 or field.name not in ("outputs", "names", "order"):
                yield value[:place] + value[place + 1 :]
            if dataclasses.is_dataclass(each):
                yield from ((*value[:place], other, *value[place + 1 :]) for other in _variants(each))
    elif isinstance(value, bool):
        if value:
            yield False
    elif dataclasses.is_dataclass(value):
        if field.name in ("where", "having", "residual"):
            yield None
        yield from _variants(value)


def _smaller_expressions(expression: Expr) -> Iterator[Expr]:
    for template in _SIMPLEST[expression.type]:
        if expression.args or expression.template not in _SIMPLEST[expression.type]:
            yield Expr(expression.type, template)
    for place, arg in enumerate(expression.args):
        if arg.type is expression.type:
            yield arg
        for smaller in _smaller_expressions(arg):
            args = (*expression.args[:place], smaller, *expression.args[place + 1 :])
            yield dataclasses.replace(expression, args=args)
