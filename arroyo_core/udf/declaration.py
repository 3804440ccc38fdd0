"""What all decorators check in the same way: names, volatility, durations."""

from __future__ import annotations

import inspect

from arroyo_core.api.units import parse_duration_us
from arroyo_core.errors import UdfDeclarationError
from arroyo_core.udf.user_function import Volatility


def read_name(written: object, name: str | None) -> str:
    """The name that was given, or else the function's own; raises `UdfDeclarationError` unless SQL can call it."""
    found = name if name is not None else getattr(written, "__name__", "")
    if not found.isidentifier() or not found.isascii():
        raise UdfDeclarationError(
            f"UDF name {found!r}: a name consists of letters, digits and underscores, and does not begin with a digit; "
            "give another with 'name'"
        )
    return found


def read_volatility(text: str, *, udf: str) -> Volatility:
    try:
        return Volatility(text)
    except ValueError:
        allowed = ", ".join(Volatility)
        raise UdfDeclarationError(f"UDF {udf!r}: volatility {text!r} is unknown (allowed: {allowed})") from None


def read_duration_us(text: str | None, *, option: str, udf: str, allows_zero: bool = False) -> int | None:
    """The microseconds of a duration such as `5s`; None stays None."""
    if text is None:
        return None
    if not isinstance(text, str):
        raise UdfDeclarationError(f"UDF {udf!r}: {option!r} is {text!r}; write a text such as '5s'")
    try:
        duration_us = parse_duration_us(text)
    except ValueError as error:
        raise UdfDeclarationError(f"UDF {udf!r}: {option!r}: {error}") from None
    if duration_us == 0 and not allows_zero:
        raise UdfDeclarationError(f"UDF {udf!r}: {option!r} must be more than zero")
    return duration_us


def read_doc(written: object) -> str:
    return inspect.getdoc(written) or ""
