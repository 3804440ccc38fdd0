"""What is installed: operators, user functions and plugins, with their docs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cached_property
from typing import Any, cast

from arroyo_devtools.reference.words import type_with_range
from arroyo_devtools.schema import pipeline_schema
from arroyo_devtools.schema.config_schema import ConfigSchemas
from arroyo_devtools.schema.field_docs import FieldDoc
from arroyo_devtools.schema.offers import Offers
from arroyo_devtools.schema.operator_docs import OperatorDoc, describe_operators
from google.protobuf.descriptor import Descriptor

from arroyo_console.errors import UnknownError
from arroyo_console.values import Connector, Function, Plugin, SettingDoc
from arroyo_core.pipeline.mistakes import nearest
from arroyo_core.plugin import PluginSet


class Catalog:
    """Read once: what is installed does not change while the server runs."""

    def __init__(self, plugins: PluginSet) -> None:
        self._plugins = plugins

    def connectors(self, *, kind: str | None) -> tuple[Connector, ...]:
        return tuple(_listed(doc) for doc in self._docs.values() if kind in (None, doc.kind.value))

    def connector(self, name: str) -> Connector:
        doc = self._docs.get(name)
        if doc is None:
            near = nearest(name, self._docs)
            raise UnknownError(f"there is no operator {name!r}", where="name", allowed=[near] if near else [])
        definitions: dict[str, Any] = {}
        schemas = ConfigSchemas(doc.comments, self._offers, definitions)
        schema = schemas.config(cast(Descriptor, doc.config_type.DESCRIPTOR))
        listed = _listed(doc)
        return Connector(
            name=listed.name,
            kind=listed.kind,
            distribution=listed.distribution,
            version=listed.version,
            summary=listed.summary,
            text="\n\n".join([*doc.text.paragraphs, *(f"{title}: {text}" for title, text in doc.text.sections)]),
            settings=tuple(_settings(doc.fields)),
            schema={**schema, "definitions": definitions} if definitions else schema,
            example=doc.text.example,
        )

    def functions(self) -> tuple[Function, ...]:
        registry = self._plugins.registry
        found = []
        for name, udf in sorted(registry.udfs.items()):
            made: Any = udf
            origin = registry.udf_origin(name)
            found.append(
                Function(
                    name=name,
                    signature=str(getattr(made, "signature", name)),
                    distribution=origin.distribution,
                    version=origin.version,
                    text=inspect.cleandoc(getattr(made, "doc", "") or ""),
                )
            )
        return tuple(found)

    def plugins(self) -> tuple[Plugin, ...]:
        return tuple(
            Plugin(
                name=report.name,
                distribution=report.origin.distribution,
                version=report.origin.version,
                error=report.error or ("it is blocked" if report.is_blocked else ""),
            )
            for report in self._plugins.reports
        )

    def schema(self) -> dict[str, object]:
        return self._schema

    @cached_property
    def _schema(self) -> dict[str, object]:
        return pipeline_schema(self._plugins)

    @cached_property
    def _docs(self) -> dict[str, OperatorDoc]:
        return describe_operators(self._plugins)

    @cached_property
    def _offers(self) -> Offers:
        return Offers(self._plugins)


def _listed(doc: OperatorDoc) -> Connector:
    return Connector(
        name=doc.name,
        kind=doc.kind.value,
        distribution=doc.origin.distribution,
        version=doc.origin.version,
        summary=doc.text.summary,
    )


def _settings(fields: tuple[FieldDoc, ...], above: str = "") -> Iterator[SettingDoc]:
    for field in fields:
        choices = f" ({', '.join(choice.name for choice in field.choices)})" if field.choices else ""
        yield SettingDoc(
            name=f"{above}{field.name}",
            type=f"{type_with_range(field)}{choices}",
            text=field.description,
            is_required=field.is_required,
            default=field.default,
        )
        yield from _settings(field.fields, f"{above}{field.name}.")
