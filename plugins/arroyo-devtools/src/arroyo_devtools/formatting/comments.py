"""The comments of a YAML text, which its parser throws away."""

from __future__ import annotations

import re
from dataclasses import dataclass

import yaml

_COMMENT = re.compile(r"#[^\r\n\x85\u2028\u2029]*")
#: What stands behind the sign of a block scalar, on its line.
_BLOCK_HEADER = re.compile(r"[|>][-+0-9]*[ \t]+(?P<comment>#[^\r\n\x85\u2028\u2029]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """One comment with its `#`. Index and line count from 0, columns too, as PyYAML's marks do."""

    index: int
    line: int
    column: int
    text: str
    #: Nothing but space is before it on its line.
    is_alone: bool


def find_comments(text: str) -> list[Comment]:
    """The comments in order. The text must be YAML: a mistake in it raises `yaml.YAMLError`."""
    places: list[tuple[int, str]] = []
    end = 0
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        start = token.start_mark.index
        # Whatever is between two tokens is space and comments.
        places += [(end + match.start(), match.group()) for match in _COMMENT.finditer(text[end:start])]
        if isinstance(token, yaml.ScalarToken) and token.style in ("|", ">"):
            header = _BLOCK_HEADER.match(text, start)
            places += [(header.start("comment"), header["comment"])] if header else []
        end = max(end, token.end_mark.index)
    return _located(text, places)


def _located(text: str, places: list[tuple[int, str]]) -> list[Comment]:
    found: list[Comment] = []
    line, line_start, at = 0, 0, 0
    for index, comment in places:
        for match in re.finditer("\r\n|[\n\r\x85\u2028\u2029]", text[at:index]):
            line, line_start = line + 1, at + match.end()
        at = index
        found.append(
            Comment(
                index=index,
                line=line,
                column=index - line_start,
                text=comment.rstrip(),
                is_alone=not text[line_start:index].strip(" \t"),
            )
        )
    return found
