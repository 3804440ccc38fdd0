"""The messages of the planner, as they stand in its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import arroyo_sql.planner

PLANNER = Path(arroyo_sql.planner.__file__).parent
#: What makes an error of its first argument, or of its third.
_MAKERS = {"refuse": 0, "PipelineError": 0, "add": 0, "add_unknown": 0, "_at": 2, "_rule": 1, "Hint": 0}
#: Where `str.format` puts a value in.
_PUT_IN = re.compile(r"\{\d[^}]*\}")
_VARIABLES = ("message", "instead")


@dataclass(frozen=True, slots=True)
class Message:
    """A message, with a pattern that its texts fulfil: what is put in is anything."""

    place: str
    shown: str
    pattern: re.Pattern[str]


def planner_messages() -> Iterator[Message]:
    for path in sorted(PLANNER.glob("*.py")):
        for node in _texts(ast.parse(path.read_text(encoding="utf-8"))):
            parts = [re.escape(part) if part is not None else ".*" for part in _parts(node)]
            shown = "".join(part if part is not None else "{}" for part in _parts(node))
            yield Message(f"{path.name}:{node.lineno}", shown, re.compile("".join(parts), re.DOTALL))


def _texts(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        found: ast.expr | None = None
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            place = _MAKERS.get(name)
            found = node.args[place] if place is not None and len(node.args) > place else None
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in _VARIABLES:
            found = node.value
        if found is not None and " " in "".join(part or "" for part in _parts(found)):
            yield found


def _parts(node: ast.expr) -> list[str | None]:
    """The text, with None for each value that is put in; empty for what is not a text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        texts = [text.replace("{{", "{").replace("}}", "}") for text in _PUT_IN.split(node.value)]
        return [part for text in texts for part in (text, None)][:-1]
    if not isinstance(node, ast.JoinedStr):
        return []
    return [str(part.value) if isinstance(part, ast.Constant) else None for part in node.values]
