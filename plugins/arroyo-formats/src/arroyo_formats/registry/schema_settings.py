"""The settings `schema`, `schema_file`, `registry` and `framing`, which formats with a registry share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arroyo_core.api.policy import current_policy
from arroyo_core.errors import ConfigError
from arroyo_formats.driver_files import read_text
from arroyo_formats.registry.client import SchemaRegistry, UnknownSchemaError
from arroyo_formats.registry.settings import resolve_registry
from arroyo_formats.schemas_pb2 import SchemaFile

#: What may be in front of a value: nothing, or the number of its schema.
NONE, CONFLUENT = "none", "confluent"


def resolve_schema(settings: Any, *, kind: str, framings: Sequence[str] = (NONE, CONFLUENT)) -> None:
    """Put in what only the driver can find out: the text of a file, the version of a subject, the default framing.

    `kind` is what the registry calls schemas of the format. Raises `ConfigError`.
    """
    if settings.schema and settings.schema_file:
        raise ConfigError("schema and schema_file exclude each other", field="schema_file")
    if settings.schema_file:
        settings.schema = read_text(settings.schema_file, field="schema_file")
        if not settings.schema.strip():
            raise ConfigError("the file is empty", field="schema_file", value=settings.schema_file)
        settings.schema_file = ""
    has_registry = settings.HasField("registry")
    if has_registry and not settings.framing:
        settings.framing = CONFLUENT
    if settings.framing and settings.framing not in framings:
        raise ConfigError(
            f"there is no framing {settings.framing!r}", field="framing", value=settings.framing, allowed=framings
        )
    if settings.framing == CONFLUENT and not has_registry:
        raise ConfigError("framing confluent needs a registry, which has the schemas", field="registry")
    if has_registry:
        resolve_registry(settings.registry)
        _ask_registry(settings, kind)


def missing_columns(name: str, settings: Any) -> ConfigError:
    """What to say where neither the pipeline nor the settings tell the columns of a format."""
    registry = settings.registry
    if registry.subject:
        current_policy().check_network(
            f"to ask the schema registry for {registry.subject!r}",
            field="format.registry",
            instead="declare the columns, or give a schema",
        )
        return ConfigError(
            f"the schema registry has no subject {registry.subject!r}, version {registry.version}: "
            "declare the columns, or give a schema",
            field="format.registry.subject",
            value=registry.subject,
        )
    return ConfigError(
        f"{name} needs columns: declare them, or give a schema, a schema_file or a registry", field="schema"
    )


def _ask_registry(settings: Any, kind: str) -> None:
    """Put the version of the subject in, where rows are read as that. A subject that is not there yet is no mistake."""
    registry = settings.registry
    if settings.schema or not registry.subject or settings.HasField("registered"):
        return
    # Also where there is nothing: what is resolved once stays as it is.
    settings.registered.SetInParent()
    if current_policy().is_untrusted:
        return
    client = SchemaRegistry.of(registry)
    try:
        found = client.version(registry.subject, registry.version)
    except UnknownSchemaError:
        return
    if found.kind != kind:
        raise ConfigError(f"subject {registry.subject!r} has schemas of {found.kind}", field="registry.subject")
    settings.registered.text = found.text
    for name, text in client.referenced(found):
        settings.registered.references.append(SchemaFile(name=name, text=text))
