"""The pages of the reference, in Markdown: operators, formats, user functions, the pipeline file and the commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arroyo_core.cli.commands import RootParser
from arroyo_core.plugin import PluginSet
from arroyo_devtools.reference.command_page import command_page
from arroyo_devtools.reference.file_page import file_page
from arroyo_devtools.reference.format_page import FORMAT_HOOK, formats_page
from arroyo_devtools.reference.function_page import function_page
from arroyo_devtools.reference.markdown import cell, fenced, table
from arroyo_devtools.reference.metrics_page import metrics_page
from arroyo_devtools.reference.words import KIND_TITLES, config_words, field_table, kind_words
from arroyo_devtools.schema import OperatorDoc, describe_operators, pipeline_schema
from arroyo_devtools.schema.field_docs import FieldDoc
from arroyo_devtools.schema.offers import Offers
from arroyo_devtools.schema.prose import first_sentence

#: How every page begins, also one of another version.
MARK = "<!-- Made by `arroyo docs "
_FIRST_LINE = f"{MARK}--format markdown`: edit the source of what it describes, then run `make docs-reference`. -->"
_EXAMPLE_STREAMS = (
    "Examples read the streams `bids`, `auctions` and `people` of [`nexmark.source`](operators/nexmark.source.md)."
)


@dataclass(frozen=True, slots=True)
class Page:
    """`path` is that below the folder of the reference."""

    path: str
    text: str


def reference_pages(plugins: PluginSet, root: RootParser) -> list[Page]:
    """All pages; `root` is the parser of all commands."""
    operators = describe_operators(plugins)
    distributions = sorted({plugins.registry.udf_origin(name).distribution for name in plugins.registry.udfs})
    texts = {
        "README.md": _index(operators, distributions),
        "cli.md": command_page(root),
        "pipeline-file.md": file_page(pipeline_schema(plugins)),
        "formats.md": formats_page(operators, Offers(plugins)),
        "metrics.md": metrics_page(),
        **{f"operators/{doc.name}.md": operator_page(doc) for doc in operators.values()},
        **{f"functions/{name}.md": function_page(name, plugins) for name in distributions},
    }
    return [Page(path, f"{_FIRST_LINE}\n\n{text.strip()}\n") for path, text in texts.items()]


def operator_page(doc: OperatorDoc) -> str:
    text = doc.text
    parts = [
        f"# {doc.name}",
        text.summary,
        *text.paragraphs,
        f"It is {kind_words(doc)}, of `{doc.origin.distribution}`.",
    ]
    if text.example:
        parts += ["## Example", fenced(text.example, "yaml")]
    parts += ["## Config", *(_fields(doc.fields) if doc.fields else [config_words(doc)])]
    for title, section in text.sections:
        parts += [f"## {title}", section[:1].upper() + section[1:]]
    return "\n\n".join(part for part in parts if part)


def _fields(fields: Sequence[FieldDoc], path: str = "") -> list[str]:
    """A table of the fields, then one for each that has choices or fields of its own."""
    parts = [field_table(fields)]
    for field in fields:
        title = f"{path}{field.name}"
        if field.choices:
            also = f"{', or another name' if field.is_open else ''}{_mapping_words(field)}"
            lines = [f"- `{choice.name}`: {choice.description}".removesuffix(": ") for choice in field.choices]
            parts += [f"### `{title}`", f"One of these{also}:", "\n".join(lines)]
        if field.fields:
            is_single = field.type == "mapping"
            inner = _fields(field.fields, f"{title}." if is_single else f"{title}[].")
            parts += [f"### `{title}`", "It has:" if is_single else "Each of them has:", *inner]
    return parts


def _mapping_words(field: FieldDoc) -> str:
    if field.hook == FORMAT_HOOK:
        return ", or a mapping with `name` and the [settings of the format](../formats.md)"
    return ", or a mapping" if field.takes_mapping else ""


def _index(operators: Mapping[str, OperatorDoc], distributions: Sequence[str]) -> str:
    parts = [
        "# Reference",
        "The same texts are shown by `arroyo docs NAME`, and by editors that know the [JSON Schema](../editors.md).",
        "- [The pipeline file](pipeline-file.md)\n- [The commands](cli.md)\n- [Formats of files](formats.md)\n"
        "- [Metrics](metrics.md)",
        _EXAMPLE_STREAMS,
    ]
    for kind, title in KIND_TITLES.items():
        rows = [
            (
                f"[`{doc.name}`](operators/{doc.name}.md)",
                first_sentence(doc.text.summary),
                f"`{doc.origin.distribution}`",
            )
            for doc in operators.values()
            if doc.kind is kind
        ]
        if rows:
            parts += [f"## {title}", table(("Name", "What it does", "Distribution"), rows)]
    if distributions:
        links = [f"- [`{cell(name)}`](functions/{name}.md)" for name in distributions]
        parts += ["## User functions", "\n".join(links)]
    return "\n\n".join(parts)
