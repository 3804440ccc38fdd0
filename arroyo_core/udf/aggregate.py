"""`@udaf`: aggregates of the user's own, whose states merge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, overload

import pyarrow as pa

from arroyo_core.errors import UdfDeclarationError
from arroyo_core.udf.annotations import read_hints, read_parameters, resolve
from arroyo_core.udf.declaration import read_doc, read_name, read_volatility
from arroyo_core.udf.user_errors import failure, raised, show_row, show_value
from arroyo_core.udf.user_function import UserFunction
from arroyo_core.udf.values import CONVERSION_ERRORS, first_misfit, from_python, to_python

_METHODS = ("init", "update", "merge", "finish")


class Aggregation(Protocol):
    """What a class under `@udaf` has. It is made once, without arguments; all it knows of a group is the state."""

    def init(self) -> Any:
        """The state of no rows."""

    def update(self, state: Any, *values: Any) -> Any:
        """The state with one row more; the old state may be changed and given back."""

    def merge(self, first: Any, second: Any) -> Any:
        """The state of the rows of both."""

    def finish(self, state: Any) -> Any:
        """The result of a state; called more than once for one state where results come early."""


@dataclass(frozen=True, kw_only=True)
class AggregateUdf(UserFunction):
    """One result for each group of rows; between batches, before and behind a shuffle, groups are their states."""

    state_type: pa.DataType
    aggregation: Aggregation
    #: Whether a null is a state like others; else a null stands for the state of no rows.
    has_null_states: bool = False

    @property
    def takes_batches(self) -> bool:
        """Whether the class has `update_batch`, which takes all rows of a group in a batch as arrays."""
        return hasattr(self.aggregation, "update_batch")

    def partial(self, columns: Sequence[pa.Array], bounds: Sequence[int]) -> pa.Array:
        """The state of each group of rows sorted by group: group i has the rows from bounds[i] to bounds[i + 1].

        Rows come to `update` in order, and without those that have a null where the parameter takes none: the
        caller leaves them out. Raises `UdfError`.
        """
        cast = [
            column if column.type == parameter.type else column.cast(parameter.type)
            for column, parameter in zip(columns, self.parameters, strict=True)
        ]
        fold = self._fold_batches if self.takes_batches else self._fold_rows
        return self._stored(fold(cast, bounds))

    def merge(self, states: pa.Array, bounds: Sequence[int]) -> pa.Array:
        """One state of each group of states sorted by group; of none: the state of no rows. Raises `UdfError`."""
        loaded = self._loaded(states)
        merged: list[Any] = []
        first = second = None
        try:
            for start, end in pairwise(bounds):
                if start == end:
                    merged.append(self.aggregation.init())
                    continue
                first = loaded[start]
                for second in loaded[start + 1 : end]:
                    first = self.aggregation.merge(first, second)
                merged.append(first)
        except BaseException as error:
            raise raised(self, error, sample=show_row(["first", "second"], [first, second])) from error
        return self._stored(merged)

    def finish(self, states: pa.Array) -> pa.Array:
        """The result of each state, under `return_type`. Raises `UdfError`."""
        loaded = self._loaded(states)
        results: list[Any] = []
        try:
            results.extend(map(self.aggregation.finish, loaded))
        except BaseException as error:
            raise raised(self, error, sample=show_row(["state"], [loaded[len(results)]])) from error
        return self._converted(results, self.return_type, what="finish")

    def _fold_rows(self, columns: list[pa.Array], bounds: Sequence[int]) -> list[Any]:
        lists = [to_python(column) for column in columns]
        names = [parameter.name for parameter in self.parameters]
        init, update = self.aggregation.init, self.aggregation.update
        states: list[Any] = []
        row: tuple[Any, ...] = ()
        value: Any = None
        try:
            for start, end in pairwise(bounds):
                state = init()
                if len(lists) == 1:
                    for value in lists[0][start:end]:
                        state = update(state, value)
                else:
                    for row in zip(*(each[start:end] for each in lists), strict=True):
                        state = update(state, *row)
                states.append(state)
        except BaseException as error:
            failing = [value] if len(lists) == 1 else row
            raise raised(self, error, sample=show_row(names, failing)) from error
        return states

    def _fold_batches(self, columns: list[pa.Array], bounds: Sequence[int]) -> list[Any]:
        update: Callable[..., Any] = self.aggregation.update_batch  # type: ignore[attr-defined]
        states: list[Any] = []
        start = end = 0
        try:
            for start, end in pairwise(bounds):
                state = self.aggregation.init()
                if start < end:
                    state = update(state, *(column.slice(start, end - start) for column in columns))
                states.append(state)
        except BaseException as error:
            names = [parameter.name for parameter in self.parameters]
            shown = show_row(names, [column[start].as_py() for column in columns]) if start < end else ""
            raise raised(self, error, sample=f"{end - start} rows, the first: {shown}") from error
        return states

    def _loaded(self, states: pa.Array) -> list[Any]:
        loaded = to_python(states)
        if pa.types.is_struct(self.state_type) and _is_tuple(self.state_type):
            loaded = [None if state is None else tuple(state.values()) for state in loaded]
        if states.null_count and not self.has_null_states:
            return [self.aggregation.init() if state is None else state for state in loaded]
        return loaded

    def _stored(self, states: list[Any]) -> pa.Array:
        if pa.types.is_struct(self.state_type) and _is_tuple(self.state_type):
            names = [field.name for field in self.state_type]
            states = [dict(zip(names, state, strict=True)) if isinstance(state, tuple) else state for state in states]
        return self._converted(states, self.state_type, what="the state")

    def _converted(self, values: list[Any], kind: pa.DataType, *, what: str) -> pa.Array:
        try:
            return from_python(values, kind)
        except CONVERSION_ERRORS as error:
            place = first_misfit(values, kind)
            shown = f"{show_value(values[place])} ({type(values[place]).__name__})" if place is not None else str(error)
            raise failure(self, f"{what} is declared as {kind}, and was {shown}") from error


@overload
def udaf(written: type[Any], /) -> AggregateUdf: ...


@overload
def udaf(
    *,
    name: str | None = None,
    arguments: Sequence[pa.DataType] | None = None,
    state: pa.DataType | None = None,
    returns: pa.DataType | None = None,
    volatility: str = "deterministic",
) -> Callable[[type[Any]], AggregateUdf]: ...


def udaf(
    written: type[Any] | None = None,
    /,
    *,
    name: str | None = None,
    arguments: Sequence[pa.DataType] | None = None,
    state: pa.DataType | None = None,
    returns: pa.DataType | None = None,
    volatility: str = "deterministic",
) -> AggregateUdf | Callable[[type[Any]], AggregateUdf]:
    """Declare a class with `init`, `update`, `merge` and `finish` as an aggregate function.

    Its name is the class's in small letters (`DailyMode`: `daily_mode`) unless `name` is given. The types come
    from the annotations of `update`, of what `init` gives and of what `finish` gives, or are explicit. A state may
    be annotated as `dict[...]` or `tuple[...]`, too. A class may have `update_batch(state, *arrays)`, which is
    called once for the rows of a group in a batch, in place of `update`.
    Raises `UdfDeclarationError` for a mistake.
    """

    def declare(kind: type[Any]) -> AggregateUdf:
        called = read_name(kind, name if name is not None else _snake_case(kind.__name__))
        aggregation = _instance(kind, udf=called)
        init, finish = (read_hints(getattr(kind, each), udf=called) for each in ("init", "finish"))
        where = f"UDF {called!r}"
        state_type, has_null_states = resolve(
            init.get("return"), where=f"{where}, result of init", explicit=state, option="state", is_state=True
        )
        return_type, _ = resolve(
            finish.get("return"), where=f"{where}, result of finish", explicit=returns, option="returns"
        )
        # Of the bound method, so that `self` is none of the parameters, and neither is it of a static method.
        parameters = read_parameters(aggregation.update, udf=called, arguments=arguments, skip=1)
        if not parameters:
            raise UdfDeclarationError(f"UDF {called!r}: update takes the state and at least one value")
        return AggregateUdf(
            name=called,
            parameters=parameters,
            return_type=return_type,
            state_type=state_type,
            has_null_states=has_null_states,
            volatility=read_volatility(volatility, udf=called),
            doc=read_doc(kind),
            aggregation=aggregation,
        )

    return declare if written is None else declare(written)


def _instance(kind: type[Any], *, udf: str) -> Aggregation:
    if not isinstance(kind, type):
        raise UdfDeclarationError(f"UDF {udf!r}: an aggregate is a class with {', '.join(_METHODS)}")
    for method in _METHODS:
        if not callable(getattr(kind, method, None)):
            raise UdfDeclarationError(f"UDF {udf!r}: class {kind.__name__} lacks the method {method!r}")
    try:
        made: Aggregation = kind()
    except Exception as error:
        raise UdfDeclarationError(
            f"UDF {udf!r}: class {kind.__name__} cannot be made without arguments: {error}"
        ) from error
    return made


def _snake_case(name: str) -> str:
    parts = [f"_{each.lower()}" if each.isupper() and place else each.lower() for place, each in enumerate(name)]
    return "".join(parts) if not name.isupper() else name.lower()


def _is_tuple(kind: pa.DataType) -> bool:
    """Whether a struct was made from `tuple[...]`."""
    return [field.name for field in kind] == [f"_{place}" for place in range(kind.num_fields)]
