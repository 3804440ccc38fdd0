"""The schema of a writer in the registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from arroyo_core.errors import ConfigError
from arroyo_formats.registry.client import RegisteredSchema, SchemaRegistry, UnknownSchemaError


@dataclass(frozen=True, slots=True)
class Registration:
    """A schema that is to be in a subject when the first row is written."""

    registry: SchemaRegistry
    subject: str
    may_register: bool
    schema: RegisteredSchema

    @classmethod
    def of(cls, settings: Any, schema: RegisteredSchema) -> Registration:
        """By resolved settings of a registry; raises `ConfigError` where they have no subject."""
        if not settings.subject:
            raise ConfigError("writing needs the subject of the registry", field="format.registry.subject")
        return cls(SchemaRegistry.of(settings), settings.subject, settings.register, schema)

    def check(self) -> None:
        """Raise `ConfigError` where `number` would; changes nothing."""
        if self.may_register:
            self.registry.check(self.subject, self.schema)
        else:
            self._known()

    def number(self) -> int:
        """The number of the schema, which is added to the subject if need be."""
        return self.registry.register(self.subject, self.schema) if self.may_register else self._known()

    def _known(self) -> int:
        try:
            return self.registry.lookup(self.subject, self.schema)
        except UnknownSchemaError as error:
            raise ConfigError(f"{error}, and register is false", field="format.registry.subject") from error
