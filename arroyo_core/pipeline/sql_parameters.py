"""Values that are given for parameters (`--set`) inside of SQL: they stay values, whatever they hold.

Between quotes a value is the content of that text or name, with quotes doubled. Elsewhere it must be a number or a
plain name. What the file itself says, defaults of parameters included, is its author's and is left as it is; so is a
reference that stands alone, which is the whole expression.
"""

from __future__ import annotations

import re

from arroyo_core.pipeline.document import GivenSpan, Scalar
from arroyo_core.pipeline.mistakes import Mistakes

_PLAIN = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|\w+(\.\w+)*")
#: Texts in which a backslash means something: `E'...'` and `U&'...'`.
_ESCAPING = "E'"
_OPENING = re.compile(r"(?P<escaping>(?:(?<!\w)[eE]|[uU]&)')|--|/\*|['\"`]")
#: Up to the end of each; to be matched, not searched for.
_END = {
    "--": re.compile(r".*?\n", re.DOTALL),
    "/*": re.compile(r".*?\*/", re.DOTALL),
    **{quote: re.compile(rf"[^{quote}]*+{quote}") for quote in "'\"`"},
    _ESCAPING: re.compile(r"(?:[^'\\]|\\.)*+'", re.DOTALL),
}
_QUOTES = ("'", '"', "`", _ESCAPING)


def quote_given(scalar: Scalar, what: str, mistakes: Mistakes) -> str | None:
    """The text of a field of SQL with all given values quoted; None, and a mistake, for one that cannot be."""
    result, end, inside = "", 0, ""
    for span in scalar.given:
        written, value = scalar.text[end : span.start], scalar.text[span.start : span.stop]
        result, end, inside = result + written, span.stop, _inside_after(written, inside)
        problem = _problem(value, span, inside, before=result)
        if problem:
            message = f"{what}: the value given for parameter {span.name!r} {problem}"
            mistakes.add(message, at=scalar.at, value=value[:80])
            return None
        result += value.replace(inside[-1], inside[-1] * 2) if inside in _QUOTES else value
    return result + scalar.text[end:]


def _problem(value: str, span: GivenSpan, inside: str, *, before: str) -> str:
    """Why a value cannot stand there; empty where it can."""
    if "\0" in value:
        return "has a character that SQL cannot hold"
    if inside == _ESCAPING and "\\" in value:
        return "has a backslash, inside a text where it would not be one"
    if inside in _QUOTES:
        return ""
    if value.startswith("-") and before.endswith("-"):
        return "would begin a comment behind the minus sign: put a space there"
    if span.is_plain or _PLAIN.fullmatch(value):
        return ""
    return (
        "is neither a number nor a plain name, and stands in SQL outside of quotes: "
        f"write '${{{span.name}}}' where it is a text. An expression must be all of the field, or stand in the file"
    )


def _inside_after(text: str, inside: str) -> str:
    """What the end of some written text is inside of, which begins inside of something itself; empty for nothing."""
    at = 0
    while True:
        if inside:
            end = _END[inside].match(text, at)
            if end is None:
                return inside
            at = end.end()
        opening = _OPENING.search(text, at)
        if opening is None:
            return ""
        at, inside = opening.end(), _ESCAPING if opening["escaping"] else opening.group()
