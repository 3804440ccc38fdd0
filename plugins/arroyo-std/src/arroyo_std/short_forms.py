"""Shorter forms that programs may use where a file has lists of mappings: `count="n"`, `on="id"`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arroyo_std.std_pb2 import Aggregate

_FUNCTIONS = frozenset(Aggregate.Function.keys())
_AGGREGATES = "aggregates"
_ON = "on"


def with_aggregates(given: Mapping[str, object]) -> Mapping[str, object]:
    """Functions by name, behind the `aggregates` that are given.

    `count="n"` names the column of the result; `max=("price", "top")` has the column to aggregate before it; a mapping
    is as in a file, without the function; a list has several.
    """
    functions = [name for name in given if name in _FUNCTIONS]
    if not functions:
        return given
    listed = given.get(_AGGREGATES, ())
    if not _is_list(listed):
        # Not for us to say what is wrong with it.
        return given
    made = [_aggregate(name, form) for name in functions for form in _forms(given[name])]
    others = {name: value for name, value in given.items() if name not in functions}
    return {**others, _AGGREGATES: [*listed, *made]}  # type: ignore[misc]


def with_join_keys(given: Mapping[str, object]) -> Mapping[str, object]:
    """`on="id"` and `on=["id", "day"]` for columns of one name, `on={"id": "seller"}` for left and right ones."""
    on = given.get(_ON)
    if isinstance(on, str):
        return {**given, _ON: [{"left": on}]}
    if isinstance(on, Mapping):
        return {**given, _ON: [{"left": left, "right": right} for left, right in on.items()]}
    if _is_list(on):
        return {**given, _ON: [{"left": key} if isinstance(key, str) else key for key in on]}  # type: ignore[attr-defined]
    return given


def _forms(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else [value]


def _aggregate(function: str, form: object) -> object:
    match form:
        case str():
            return {"function": function, "as": form}
        case (str() as column, str() as name):
            return {"function": function, "column": column, "as": name}
        case Mapping():
            return {"function": function, **form}
    return {"function": function, "as": form}


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
