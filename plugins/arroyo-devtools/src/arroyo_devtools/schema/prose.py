"""Takes comments apart: paragraphs, sections, an example, and the default that a field's comment names.

A comment is prose. What it says in a fixed form is found again:

- a message's first paragraph is its summary; "`plugin.operator`: " may stand before it;
- lines that begin with `Output:`, `Side outputs:` or `State:` begin a section, `Example:` begins YAML that goes on to
  the end;
- in a field's comment, `Default: never.` says what happens where the field is not written, and
  `Default: never; results come at the end.` also has a remark. A value is not prose: it is the option
  `(arroyo_core.default)` of the field.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

SECTIONS = ("Output", "Side outputs", "State")
_EXAMPLE = "Example:"
_OPERATOR_NAME = re.compile(r"`[\w.]+`: ")
_SECTION = re.compile(rf"({'|'.join(SECTIONS)}): *(.*)")
_DEFAULT = re.compile(r"(?:^|(?<=\s))Default: (?P<value>.+?)(?:; (?P<remark>.+?))?\.(?=\s|$)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorText:
    """The comment of an operator's config message."""

    summary: str = ""
    paragraphs: tuple[str, ...] = ()
    #: By title, in the order of `SECTIONS`.
    sections: tuple[tuple[str, str], ...] = ()
    #: YAML: a list of nodes.
    example: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldText:
    """The comment of a field, without the default that it names."""

    description: str = ""
    #: What happens: `as fast as possible`.
    default: str = ""
    #: What the comment says of it: `0 for never`.
    remark: str = ""

    @property
    def default_words(self) -> str:
        return f"{self.default}; {self.remark}" if self.remark else self.default


def read_operator_text(comment: str) -> OperatorText:
    prose, _, example = f"\n{comment}".partition(f"\n{_EXAMPLE}")
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    current = lines
    for line in prose.splitlines():
        match = _SECTION.match(line)
        if match:
            current = sections.setdefault(match[1], [])
            current.append(match[2])
        elif not line.strip():
            current = lines
            lines.append("")
        else:
            current.append(line)
    summary, *others = _paragraphs(lines) or [""]
    summary = _OPERATOR_NAME.sub("", summary, count=1)
    return OperatorText(
        summary=summary[:1].upper() + summary[1:],
        paragraphs=tuple(others),
        sections=tuple((title, _joined(sections[title])) for title in SECTIONS if title in sections),
        example=textwrap.dedent(example).strip("\n"),
    )


def read_field_text(comment: str) -> FieldText:
    text = "\n\n".join(_paragraphs(comment.splitlines()))
    match = _DEFAULT.search(text)
    if match is None:
        return FieldText(description=text)
    description = re.sub(r" {2,}", " ", text[: match.start()] + text[match.end() :]).strip()
    return FieldText(description=description, default=match["value"], remark=match["remark"] or "")


def first_sentence(text: str) -> str:
    """For lists: up to the first full stop that ends a sentence."""
    return re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0]


def _paragraphs(lines: Iterable[str]) -> list[str]:
    blocks = "\n".join(lines).split("\n\n")
    return [_joined(block.splitlines()) for block in blocks if block.strip()]


def _joined(lines: Iterable[str]) -> str:
    return " ".join(line.strip() for line in lines if line.strip())
