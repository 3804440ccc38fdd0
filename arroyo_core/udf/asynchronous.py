"""`@async_udf`: coroutines for calls that wait, of services and databases."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import pyarrow as pa

from arroyo_core.errors import UdfDeclarationError
from arroyo_core.udf.annotations import read_hints, read_parameters, resolve
from arroyo_core.udf.declaration import read_doc, read_duration_us, read_name, read_volatility
from arroyo_core.udf.user_function import UserFunction

DEFAULT_CONCURRENCY = 100


@dataclass(frozen=True, kw_only=True)
class AsyncUdf(UserFunction):
    """A coroutine function, called once per row; its settings are defaults of the node's."""

    function: Callable[..., Awaitable[Any]]
    #: How many calls may be under way in one subtask.
    concurrency: int = DEFAULT_CONCURRENCY
    #: How long one attempt may take; None for as long as it likes.
    timeout_us: int | None = None
    #: How often a call that failed is tried again.
    retries: int = 0
    #: How long it is waited before the first retry; twice as long before each one after.
    backoff_us: int = 100_000
    #: Whether results come in the order of the rows.
    is_ordered: bool = True

    def __call__(self, *arguments: Any) -> Awaitable[Any]:
        return self.function(*arguments)


@overload
def async_udf(function: Callable[..., Awaitable[Any]], /) -> AsyncUdf: ...


@overload
def async_udf(
    *,
    name: str | None = None,
    arguments: Sequence[pa.DataType] | None = None,
    returns: pa.DataType | None = None,
    volatility: str = "volatile",
    concurrency: int = DEFAULT_CONCURRENCY,
    timeout: str | None = None,
    retries: int = 0,
    backoff: str = "100ms",
    ordered: bool = True,
) -> Callable[[Callable[..., Awaitable[Any]]], AsyncUdf]: ...


def async_udf(
    function: Callable[..., Awaitable[Any]] | None = None,
    /,
    *,
    name: str | None = None,
    arguments: Sequence[pa.DataType] | None = None,
    returns: pa.DataType | None = None,
    volatility: str = "volatile",
    concurrency: int = DEFAULT_CONCURRENCY,
    timeout: str | None = None,
    retries: int = 0,
    backoff: str = "100ms",
    ordered: bool = True,
) -> AsyncUdf | Callable[[Callable[..., Awaitable[Any]]], AsyncUdf]:
    """Declare a coroutine function, which an operator calls for each row. Types and nulls are as with `@udf`.

    Raises `UdfDeclarationError` for a mistake.
    """

    def declare(written: Callable[..., Awaitable[Any]]) -> AsyncUdf:
        called = read_name(written, name)
        if not inspect.iscoroutinefunction(written):
            raise UdfDeclarationError(f"UDF {called!r}: it is not a coroutine function: write async def, or use @udf")
        if concurrency < 1:
            raise UdfDeclarationError(f"UDF {called!r}: 'concurrency' is {concurrency}; it must be at least 1")
        if retries < 0:
            raise UdfDeclarationError(f"UDF {called!r}: 'retries' is {retries}; it must not be negative")
        parameters = read_parameters(written, udf=called, arguments=arguments)
        if not parameters:
            raise UdfDeclarationError(f"UDF {called!r}: a function needs at least one parameter")
        hint = read_hints(written, udf=called).get("return")
        return_type, _ = resolve(hint, where=f"UDF {called!r}, result", explicit=returns, option="returns")
        return AsyncUdf(
            name=called,
            parameters=parameters,
            return_type=return_type,
            volatility=read_volatility(volatility, udf=called),
            doc=read_doc(written),
            function=written,
            concurrency=concurrency,
            timeout_us=read_duration_us(timeout, option="timeout", udf=called),
            retries=retries,
            backoff_us=read_duration_us(backoff, option="backoff", udf=called, allows_zero=True) or 0,
            is_ordered=ordered,
        )

    return declare if function is None else declare(function)
