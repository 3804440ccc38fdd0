"""Examples of user functions in a README: rows of a table, a call and what it gives, such as | `doubled(2)` | `4` |."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

_EXAMPLE = re.compile(r"^\| `(\w+\(.*?\)(?:\[.*?\])?)` \| `(.*?)` \|", re.MULTILINE)


def read_examples(readme: Path) -> list[tuple[str, str]]:
    """Every call in a table of the file, and the text of its result."""
    return _EXAMPLE.findall(readme.read_text(encoding="utf-8"))


def evaluate(example: str, functions: Mapping[str, Any]) -> Any:
    """What a call of these functions gives; only for examples that you trust."""
    return eval(example, {name: by_row(function) for name, function in functions.items()})


def by_row(function: Any) -> Callable[..., Any]:
    """A function of whole columns, to be called with one row of plain values."""

    def call(*values: Any) -> Any:
        pairs = zip(values, function.parameters, strict=True)
        return function.evaluate([pa.array([value], parameter.type) for value, parameter in pairs])[0].as_py()

    return call
