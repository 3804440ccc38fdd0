"""Values of a program as values of a pipeline file, with the places where the program wrote them."""

from __future__ import annotations

import ast
import base64
import math
import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum

from arroyo_core.api.limits import DEPTH
from arroyo_core.api.units import format_duration_us
from arroyo_core.errors import Location
from arroyo_core.pipeline.builder.places import CallSite, Sources
from arroyo_core.pipeline.document import Entry, Scalar, YamlList, YamlMap, YamlValue
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.substitution import References

_ALLOWED = "text, bytes, numbers, booleans, None, timedelta, paths, enums, and lists and mappings of these"


@dataclass(slots=True)
class DocumentWriter:
    """Makes values of a document. A text means what it means in a file: `${NAME}` is read from the environment."""

    references: References
    mistakes: Mistakes
    sources: Sources = field(default_factory=Sources)

    def value(
        self, value: object, *, site: CallSite, node: ast.expr | None = None, what: str, depth: int = 0
    ) -> YamlValue:
        """`node` is the source of the value, where it is known."""
        at = self.sources.place(node, site) if node is not None else site.at
        if depth > DEPTH.value:
            self.mistakes.add(f"{what} is nested more than {DEPTH.text} deep; {DEPTH.other}", at=at)
            return _unresolved(at)
        if isinstance(value, Mapping):
            return self._mapping(value, at, site, node, what, depth)
        # A set has no order, and what is planned must not differ from run to run.
        if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview):
            nodes = node.elts if isinstance(node, ast.List | ast.Tuple) and len(node.elts) == len(value) else ()
            items = tuple(
                self.value(
                    item,
                    site=site,
                    node=nodes[index] if nodes else node,
                    what=f"{what}[{index}]",
                    depth=depth + 1,
                )
                for index, item in enumerate(value)
            )
            return YamlList(at=at, items=items, size=1 + sum(item.size for item in items))
        return self.scalar(value, at=at, what=what)

    def scalar(self, value: object, *, at: Location, what: str) -> Scalar:
        text, is_plain = _written(value)
        if text is None:
            kind = type(value).__name__
            order = ", which has no order: give a list" if isinstance(value, Set) else ""
            self.mistakes.add(f"{what} cannot be a {kind}{order or f': allowed are {_ALLOWED}'}", at=at)
            return _unresolved(at)
        if is_plain or "$" not in text:
            return Scalar(at=at, text=text, written=text, is_plain=is_plain)
        is_reported = False

        def report(message: str, reference: str, suggestion: str | None) -> None:
            nonlocal is_reported
            is_reported = True
            self.mistakes.add(message, at=at, value=reference, suggestion=suggestion)

        resolved = self.references.resolve(text, report)
        # As in a file without quotes: what is read from the environment serves as a number, too.
        return Scalar(
            at=at,
            text=resolved.text,
            written=resolved.written,
            is_plain=resolved.is_substituted,
            is_substituted=resolved.is_substituted,
            is_unresolved=is_reported,
        )

    def _mapping(
        self, value: Mapping[object, object], at: Location, site: CallSite, node: ast.expr | None, what: str, depth: int
    ) -> YamlMap:
        keys, values = _literal_entries(node)
        entries = []
        for key, item in value.items():
            name = key if isinstance(key, str) else _written(key)[0]
            if name is None:
                self.mistakes.add(f"a key of {what} cannot be a {type(key).__name__}: allowed are texts", at=at)
                continue
            key_node, value_node = keys.get(name), values.get(name, node)
            key_at = self.sources.place(key_node, site) if key_node is not None else at
            inner = self.value(item, site=site, node=value_node, what=f"{what}, {name!r}", depth=depth + 1)
            entries.append(Entry(key=name, key_at=key_at, value=inner))
        return YamlMap(at=at, entries=tuple(entries), size=1 + sum(entry.value.size for entry in entries))


def mapping(at: Location, entries: Sequence[Entry]) -> YamlMap:
    """A mapping of the document."""
    return YamlMap(at=at, entries=tuple(entries), size=1 + sum(entry.value.size for entry in entries))


def sequence(at: Location, items: Sequence[YamlValue]) -> YamlList:
    """A list of the document."""
    return YamlList(at=at, items=tuple(items), size=1 + sum(item.size for item in items))


def _literal_entries(node: ast.expr | None) -> tuple[dict[str, ast.expr], dict[str, ast.expr]]:
    """The source of a mapping's keys and values, as far as they are written out."""
    if not isinstance(node, ast.Dict):
        return {}, {}
    named = [
        (key.value, key, value)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    ]
    return {name: key for name, key, _ in named}, {name: value for name, _, value in named}


def _unresolved(at: Location) -> Scalar:
    return Scalar(at=at, text="?", written="?", is_plain=False, is_unresolved=True)


def _written(value: object) -> tuple[str | None, bool]:
    """A value as a file has it, and whether it stands there without quotes; None for what no file can have."""
    match value:
        case None:
            return "null", True
        case Enum():
            return _written(value.value)
        case bool():
            return ("true" if value else "false"), True
        case int():
            return str(int(value)), True
        case float():
            return _float_text(float(value)), True
        case str():
            return str(value), False
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(value).decode(), False
        case timedelta():
            return format_duration_us(value // timedelta(microseconds=1)), False
        case os.PathLike():
            path = os.fspath(value)
            return (path if isinstance(path, str) else None), False
    # Numbers of numpy and the like.
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return _written(value.item())
    return None, False


def _float_text(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    return repr(value)
