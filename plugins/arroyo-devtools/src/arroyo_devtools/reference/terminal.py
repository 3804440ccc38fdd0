"""`arroyo docs` in the terminal."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from arroyo_core.api.registry import Udf
from arroyo_core.plugin import PluginSet
from arroyo_devtools.reference.words import KIND_TITLES, config_words, details, kind_words
from arroyo_devtools.schema.field_docs import FieldDoc
from arroyo_devtools.schema.operator_docs import describe_operator, describe_operators
from arroyo_devtools.schema.prose import first_sentence

_INDENT = "  "


def overview(plugins: PluginSet, *, width: int) -> str:
    """All operators by kind, then the functions."""
    operators = describe_operators(plugins)
    if not operators and not plugins.registry.udfs:
        return "No plugins are installed. The standard operators: pip install arroyo-std"
    longest = max((len(name) for name in operators), default=0)
    blocks = []
    for kind, title in KIND_TITLES.items():
        found = [doc for doc in operators.values() if doc.kind is kind]
        lines = [line for doc in found for line in _listed(doc.name.ljust(longest), doc.text.summary, width)]
        if lines:
            blocks.append("\n".join([title, *lines]))
    functions = sorted(plugins.registry.udfs)
    if functions:
        blocks.append("\n".join(["User functions", *_wrapped(", ".join(functions), _INDENT, width)]))
    return "\n\n".join([*blocks, "More about one of them: arroyo docs NAME"])


def operator_text(name: str, plugins: PluginSet, *, width: int) -> str:
    doc = describe_operator(name, plugins)
    lines = _wrapped(f"{doc.name}: {kind_words(doc)}, of {doc.origin}", "", width)
    for paragraph in (doc.text.summary, *doc.text.paragraphs):
        if paragraph:
            lines += ["", *_wrapped(paragraph, "", width)]
    lines += ["", "Config"]
    if doc.fields:
        lines += _field_lines(doc.fields, _INDENT, width)
    else:
        lines += _wrapped(config_words(doc), _INDENT, width)
    for title, text in doc.text.sections:
        lines += ["", title, *_wrapped(text[:1].upper() + text[1:], _INDENT, width)]
    if doc.text.example:
        lines += ["", "Example", textwrap.indent(doc.text.example, _INDENT)]
    return "\n".join(lines)


def function_text(function: Udf, plugins: PluginSet, *, width: int) -> str:
    """A user function; `arroyo_core.udf` makes them with a signature and a docstring."""
    made: Any = function
    signature = getattr(made, "signature", function.name)
    lines = [f"{signature}", "", f"A user function of {plugins.registry.udf_origin(function.name)}."]
    doc = inspect.cleandoc(getattr(made, "doc", "") or "")
    if doc:
        # Docstrings are laid out by hand, and may have examples.
        lines += ["", *(line if len(line) <= width else textwrap.fill(line, width) for line in doc.splitlines())]
    return "\n".join(lines)


def _field_lines(fields: Iterable[FieldDoc], indent: str, width: int) -> Iterator[str]:
    deeper = indent + _INDENT * 2
    for field in fields:
        yield from textwrap.wrap(
            f"{field.name}  ({details(field)})", width, initial_indent=indent, subsequent_indent=deeper
        )
        yield from _wrapped(field.description, deeper, width)
        for choice in field.choices:
            yield from textwrap.wrap(
                f"{choice.name}: {choice.description}".rstrip(": "),
                width,
                initial_indent=f"{deeper}- ",
                subsequent_indent=f"{deeper}  ",
            )
        yield from _field_lines(field.fields, deeper, width)


def _wrapped(text: str, indent: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _listed(name: str, summary: str, width: int) -> list[str]:
    """A name, and its summary in a column beside it."""
    start = f"{_INDENT}{name}  "
    return textwrap.wrap(
        f"{start}{first_sentence(summary)}", width, subsequent_indent=" " * len(start), break_on_hyphens=False
    )
