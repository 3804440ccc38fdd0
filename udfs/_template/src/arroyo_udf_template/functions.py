"""The functions. Those over `pa.Array` see whole columns, which is faster by far than one value at a time."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.udf import udaf, udf


@udf
def template_initials(text: str) -> str:
    """The first letter of every word, in capitals.

    >>> template_initials("ada king lovelace")
    'AKL'
    """
    return "".join(word[0].upper() for word in text.split())


@udf(arguments=[pa.float64(), pa.float64()], returns=pa.float64())
def template_share(part: pa.Array, whole: pa.Array) -> pa.Array:
    """How large the part is of the whole; null where the whole is 0 or null."""
    return pc.divide(part, pc.if_else(pc.equal(whole, 0.0), None, whole))


class Span:
    """The greatest value less the least; null without values."""

    def init(self) -> list[float]:
        return []

    def update(self, state: list[float], value: float) -> list[float]:
        return [min(*state, value), max(*state, value)] if state else [value, value]

    def merge(self, first: list[float], second: list[float]) -> list[float]:
        if not first or not second:
            return first or second
        return [min(first[0], second[0]), max(first[1], second[1])]

    def finish(self, state: list[float]) -> float | None:
        return state[1] - state[0] if state else None


template_span = udaf(name="template_span")(Span)
