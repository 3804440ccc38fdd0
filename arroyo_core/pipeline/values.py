"""Reads one YAML value as what a field wants: text, number, boolean, duration, size.

Every reader returns None after recording the mistake at the value's place. `what` names the
field in the message.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping

from arroyo_core.api.units import DURATION_UNITS, SIZE_UNITS, parse_bytes, parse_duration_us
from arroyo_core.pipeline.document import Scalar, YamlList, YamlMap, YamlValue, describe, resolve_plain, shown
from arroyo_core.pipeline.mistakes import Mistakes

_TRUE = {"y", "yes", "on", "1", "true"}
_FALSE = {"n", "no", "off", "0", "false"}
_PREFIXED = re.compile(r"[-+]?0[xob][0-9A-Fa-f_]+", re.IGNORECASE)
_JSON_FLOATS = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([A-Za-z]*)")
_UNIT_WORDS = {
    "microsecond": "us",
    "millisecond": "ms",
    "milli": "ms",
    "msec": "ms",
    "second": "s",
    "sec": "s",
    "minute": "m",
    "min": "m",
    "hour": "h",
    "hr": "h",
    "day": "d",
}
#: Numbers from here on are rounded to infinity; those just below to the largest number of 32 bits.
_BEYOND_FLOAT32 = 2.0**128 - 2.0**103


def read_string(value: YamlValue, what: str, mistakes: Mistakes) -> str | None:
    scalar = _scalar(value, f"{what} must be a string", mistakes)
    if scalar is None:
        return None
    if scalar.is_parameter:
        return scalar.text
    if not isinstance(scalar.value, str):
        mistakes.add(
            f"{what} must be a string, not {describe(scalar)}; put it in quotes",
            at=scalar.at,
            value=shown(scalar),
            suggestion=None if scalar.is_null else f'"{scalar.written}"',
        )
        return None
    return scalar.value


def read_int(value: YamlValue, what: str, mistakes: Mistakes, *, least: int, greatest: int) -> int | None:
    """A whole number in the range; `1e6` and `"123"` are accepted, as in protobuf's JSON form."""
    wanted = f"{what} must be a whole number"
    scalar = _scalar(value, wanted, mistakes)
    if scalar is None:
        return None
    number = _number(scalar)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if not isinstance(number, int):
        suggestion = _meant_number(scalar)
        mistakes.add(f"{wanted}, not {describe(scalar)}", at=scalar.at, value=shown(scalar), suggestion=suggestion)
        return None
    if not least <= number <= greatest:
        mistakes.add(f"{what} must be between {least} and {greatest}", at=scalar.at, value=shown(scalar))
        return None
    return number


def read_float(value: YamlValue, what: str, mistakes: Mistakes, *, is_single: bool = False) -> float | None:
    scalar = _scalar(value, f"{what} must be a number", mistakes)
    if scalar is None:
        return None
    number = _number(scalar)
    if number is None:
        mistakes.add(
            f"{what} must be a number, not {describe(scalar)}",
            at=scalar.at,
            value=shown(scalar),
            suggestion=_meant_number(scalar),
        )
        return None
    if is_single and _BEYOND_FLOAT32 <= abs(number) < float("inf"):
        mistakes.add(f"{what} does not fit in 32 bits", at=scalar.at, value=shown(scalar))
        return None
    return float(number)


def read_bool(value: YamlValue, what: str, mistakes: Mistakes) -> bool | None:
    scalar = _scalar(value, f"{what} must be true or false", mistakes)
    if scalar is None:
        return None
    meaning = scalar.typed_value
    if isinstance(meaning, bool):
        return meaning
    word = scalar.written.casefold()
    mistakes.add(
        f"{what} must be true or false, not {describe(scalar)}",
        at=scalar.at,
        value=shown(scalar),
        allowed=("true", "false"),
        suggestion="true" if word in _TRUE else "false" if word in _FALSE else None,
    )
    return None


def read_base64(value: YamlValue, what: str, mistakes: Mistakes) -> bytes | None:
    text = read_string(value, what, mistakes)
    if text is None:
        return None
    try:
        padded = text + "=" * (-len(text) % 4)
        return base64.b64decode(padded.replace("-", "+").replace("_", "/"), validate=True)
    except binascii.Error:
        mistakes.add(f"{what} must be bytes in base64", at=value.at, value=shown(value))
        return None


def read_duration_us(value: YamlValue, what: str, mistakes: Mistakes) -> int | None:
    """A duration such as `10s`, in microseconds."""
    return _read_unit(value, what, mistakes, parse_duration_us)


def read_size(value: YamlValue, what: str, mistakes: Mistakes) -> int | None:
    """A size such as `64MiB`, in bytes."""
    return _read_unit(value, what, mistakes, parse_bytes)


def _read_unit(value: YamlValue, what: str, mistakes: Mistakes, parse: Callable[[str], int]) -> int | None:
    scalar = _scalar(value, f"{what} must be one value", mistakes)
    if scalar is None:
        return None
    try:
        return parse(scalar.text)
    except ValueError as error:
        # The parser quotes the text, which may come from the environment.
        message = str(error).replace(repr(scalar.text), repr(scalar.written))
        units = DURATION_UNITS if parse is parse_duration_us else SIZE_UNITS
        suggestion = _meant_quantity(scalar, units)
        mistakes.add(f"{what}: {message}", at=scalar.at, value=shown(scalar), suggestion=suggestion)
        return None


def _scalar(value: YamlValue, wanted: str, mistakes: Mistakes) -> Scalar | None:
    if isinstance(value, YamlList | YamlMap):
        mistakes.add(f"{wanted}, not {describe(value)}", at=value.at)
        return None
    return None if value.is_unresolved else value


def _number(scalar: Scalar) -> int | float | None:
    meaning = scalar.typed_value
    if isinstance(meaning, str):
        text = _JSON_FLOATS.get(meaning, meaning)
        meaning = float(text) if text != meaning else resolve_plain(meaning)
    return None if isinstance(meaning, bool | str) else meaning


def _meant_quantity(scalar: Scalar, units: Mapping[str, int]) -> str | None:
    """What a duration or a size was meant to be: `10`, `5 seconds`, `1GIB`."""
    match = _QUANTITY.fullmatch(scalar.text)
    if match is None or scalar.is_substituted:
        return None
    number, unit = match.groups()
    if not unit:
        return f"{number}s"
    known = {name.casefold(): name for name in units} | (_UNIT_WORDS if "s" in units else {})
    found = known.get(unit.casefold()) or known.get(unit.casefold().removesuffix("s"))
    return f"{number}{found}" if found else None


def _meant_number(scalar: Scalar) -> str | None:
    """What a number was meant to be that is written as other languages write it."""
    if scalar.is_substituted or not isinstance(scalar.value, str):
        return None
    text = scalar.written.strip()
    if _PREFIXED.fullmatch(text):
        try:
            return str(int(text, 0))
        except ValueError:
            return None
    stripped = text.replace("_", "").replace(",", "").lstrip("0") or "0"
    meaning = resolve_plain(stripped)
    return stripped if isinstance(meaning, int | float) and not isinstance(meaning, bool) else None
