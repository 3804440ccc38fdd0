"""The page of formats: those that are installed, and what settings called `format` offer of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from arroyo_devtools.reference.words import field_table
from arroyo_devtools.schema import OperatorDoc
from arroyo_devtools.schema.field_docs import FieldDoc, describe_fields
from arroyo_devtools.schema.offers import Offer, Offers

FORMAT_HOOK = "arroyo_format"


def formats_page(operators: Mapping[str, OperatorDoc], offers: Offers) -> str:
    users = [_link(doc, path) for doc, path, field in _format_fields(operators) if field.hook == FORMAT_HOOK]
    parts = [
        "# Formats",
        "How rows are written. A format is chosen by its name, `format: json`, or by a mapping with its name and "
        'settings: `format: {name: csv, delimiter: ";"}`.',
        f"These can be chosen in {', '.join(users)}." if users else "",
    ]
    for offer in offers.of(FORMAT_HOOK):
        parts += _format(offer, offers)
    own = _own_formats(operators)
    if own:
        parts += ["## In other operators", "\n".join(line for _, lines in sorted(own.items()) for line in lines)]
    return "\n\n".join(part for part in parts if part)


def _format(offer: Offer, offers: Offers) -> list[str]:
    fields = describe_fields(offer.descriptor, offer.comments, offers)
    return [
        f"## {offer.name}",
        offer.text.summary,
        *offer.text.paragraphs,
        f"It is of `{offer.origin.distribution}`{'.' if fields else ', and has no settings.'}",
        field_table(fields) if fields else "",
    ]


def _own_formats(operators: Mapping[str, OperatorDoc]) -> dict[str, list[str]]:
    """What fields called `format` offer that choose from a list of their own, by name."""
    found: dict[str, dict[str, list[str]]] = {}
    for doc, path, field in _format_fields(operators):
        for choice in field.choices if not field.hook else ():
            found.setdefault(choice.name, {}).setdefault(choice.description, []).append(_link(doc, path))
    return {
        name: [f"- `{name}` in {', '.join(users)}: {description}" for description, users in descriptions.items()]
        for name, descriptions in found.items()
    }


def _format_fields(operators: Mapping[str, OperatorDoc]) -> Iterator[tuple[OperatorDoc, str, FieldDoc]]:
    for doc in operators.values():
        for path, field in _walk(doc.fields):
            if field.name == "format":
                yield doc, path, field


def _link(doc: OperatorDoc, path: str) -> str:
    return f"[`{doc.name}`](operators/{doc.name}.md) (`{path}`)"


def _walk(fields: Sequence[FieldDoc], prefix: str = "") -> Iterator[tuple[str, FieldDoc]]:
    for field in fields:
        yield f"{prefix}{field.name}", field
        yield from _walk(field.fields, f"{prefix}{field.name}.")
