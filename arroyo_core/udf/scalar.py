"""`@udf`: functions of one row, or of whole columns, that SQL expressions call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import pyarrow as pa

from arroyo_core.errors import UdfDeclarationError, UdfError
from arroyo_core.udf.annotations import is_array, positional, read_hints, read_parameters, resolve
from arroyo_core.udf.deadlines import call_within
from arroyo_core.udf.declaration import read_doc, read_duration_us, read_name, read_volatility
from arroyo_core.udf.user_errors import failure, raised, reason, show_row, show_value
from arroyo_core.udf.user_function import UserFunction
from arroyo_core.udf.values import CONVERSION_ERRORS, first_misfit, from_python, to_python


@dataclass(frozen=True, kw_only=True)
class ScalarUdf(UserFunction):
    """One result for each row. Calling it calls the author's function as it was written."""

    function: Callable[..., Any]
    #: Whether the function takes and gives whole columns, nulls included.
    is_vectorised: bool = False
    #: How long one call of `evaluate` may take; None for as long as it likes.
    timeout_us: int | None = None

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def evaluate(self, columns: Sequence[pa.Array], *, failed: dict[int, UdfError] | None = None) -> pa.Array:
        """The results for columns of equal length, one for each parameter, under `return_type`.

        The author's function is never called for no rows. Raises `UdfError` where it raises, wants to end the
        process, is late, or gives what it did not declare. With `failed`, a function of single values that raises
        gives null for the row, and the error goes there, by the number of the row and without a traceback.
        """
        if not len(columns[0]):
            return pa.array([], self.return_type)
        cast = [
            column if column.type == parameter.type else column.cast(parameter.type)
            for column, parameter in zip(columns, self.parameters, strict=True)
        ]
        if self.is_vectorised:
            return call_within(self, self.timeout_us, lambda: self._whole(cast))
        return call_within(self, self.timeout_us, lambda: self._rows(cast, failed))

    def _whole(self, columns: list[pa.Array]) -> pa.Array:
        try:
            result = self.function(*columns)
        except BaseException as error:
            raise raised(self, error, sample=self._first_row(columns)) from error
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        if not isinstance(result, pa.Array):
            raise failure(self, f"it gave {_article(result)}, not a pyarrow.Array")
        if len(result) != len(columns[0]):
            raise failure(self, f"it gave {len(result)} values for {len(columns[0])} rows")
        if result.type == self.return_type:
            return result
        try:
            return result.cast(self.return_type)
        except CONVERSION_ERRORS as error:
            raise failure(
                self, f"it gave values of type {result.type}, which do not fit {self.return_type}: {error}"
            ) from error

    def _rows(self, columns: list[pa.Array], failed: dict[int, UdfError] | None) -> pa.Array:
        nulls = [
            column
            for column, parameter in zip(columns, self.parameters, strict=True)
            if column.null_count and not parameter.is_nullable
        ]
        if not nulls:
            return self._called([to_python(column) for column in columns], failed)
        is_called = np.logical_and.reduce([column.is_valid().to_numpy(zero_copy_only=False) for column in nulls])
        mask = pa.array(is_called)
        found: dict[int, UdfError] | None = None if failed is None else {}
        results = self._called([to_python(column.filter(mask)) for column in columns], found)
        if failed is not None and found:
            places = np.flatnonzero(is_called)
            failed.update({int(places[row]): error for row, error in found.items()})
        # Rows that were not called have no place among the results, and so get a null.
        return results.take(pa.array(np.cumsum(is_called) - 1, mask=~is_called))

    def _called(self, columns: list[list[Any]], failed: dict[int, UdfError] | None) -> pa.Array:
        results: list[Any] = []
        calls = map(self.function, *columns)
        while len(results) < len(columns[0]):
            try:
                # Extended, not made, so that after an exception the length tells which row it was.
                results.extend(calls)
            except BaseException as error:
                row = len(results)
                sample = self._shown([column[row] for column in columns])
                if failed is None:
                    raise raised(self, error, sample=sample) from error
                failed[row] = failure(self, reason(error), sample=sample)
                results.append(None)
        try:
            return from_python(results, self.return_type)
        except CONVERSION_ERRORS as error:
            raise self._misfit(columns, results, error) from error

    def _misfit(self, columns: list[list[Any]], results: list[Any], error: Exception) -> UdfError:
        row = first_misfit(results, self.return_type)
        if row is None:
            return failure(self, f"it gave values that are not all {self.return_type}: {error}")
        shown = f"it gave {show_value(results[row])} ({type(results[row]).__name__}), which is not {self.return_type}"
        return failure(self, shown, sample=self._shown([column[row] for column in columns]))

    def _first_row(self, columns: list[pa.Array]) -> str:
        row = [column[0].as_py() for column in columns]
        return self._shown(row) if len(columns[0]) == 1 else f"{len(columns[0])} rows, the first: {self._shown(row)}"

    def _shown(self, values: Sequence[object]) -> str:
        return show_row([parameter.name for parameter in self.parameters], values)


@overload
def udf(function: Callable[..., Any], /) -> ScalarUdf: ...


@overload
def udf(
    *,
    name: str | None = None,
    arguments: Sequence[pa.DataType] | None = None,
    returns: pa.DataType | None = None,
    volatility: str = "deterministic",
    timeout: str | None = None,
) -> Callable[[Callable[..., Any]], ScalarUdf]: ...


def udf(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    arguments: Sequence[pa.DataType] | None = None,
    returns: pa.DataType | None = None,
    volatility: str = "deterministic",
    timeout: str | None = None,
) -> ScalarUdf | Callable[[Callable[..., Any]], ScalarUdf]:
    """Declare a function for SQL expressions, with or without parentheses.

    Types come from the annotations, or from `arguments` and `returns`. A function whose parameters are
    annotated with `pa.Array` is called once per batch with whole columns; any other once per row, and not for
    rows with a null in an argument that is not Optional: their result is null. `timeout` bounds one batch.
    Raises `UdfDeclarationError` for a mistake.
    """

    def declare(written: Callable[..., Any]) -> ScalarUdf:
        called = read_name(written, name)
        named = positional(written, udf=called)
        if not named:
            raise UdfDeclarationError(f"UDF {called!r}: a function needs at least one parameter")
        hints = read_hints(written, udf=called)
        whole = [each.name for each in named if is_array(hints.get(each.name))]
        if whole and len(whole) < len(named):
            other = next(each.name for each in named if each.name not in whole)
            raise UdfDeclarationError(
                f"UDF {called!r}, parameter {other!r}: parameter {whole[0]!r} is a pyarrow.Array, so all must be"
            )
        parameters = read_parameters(written, udf=called, arguments=arguments, has_arrays=bool(whole))
        where = f"UDF {called!r}, result"
        return_type, _ = resolve(hints.get("return"), where=where, explicit=returns, option="returns")
        return ScalarUdf(
            name=called,
            parameters=parameters,
            return_type=return_type,
            volatility=read_volatility(volatility, udf=called),
            doc=read_doc(written),
            function=written,
            is_vectorised=bool(whole),
            timeout_us=read_duration_us(timeout, option="timeout", udf=called),
        )

    return declare if function is None else declare(function)


def _article(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
