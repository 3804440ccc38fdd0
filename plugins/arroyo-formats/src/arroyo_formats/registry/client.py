"""What formats ask of a schema registry."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import quote

from arroyo_core.errors import ConfigError, ExternalError
from arroyo_formats.limits import REGISTRY_REFERENCES
from arroyo_formats.registry.transport import AnswerError, Transport

AVRO, PROTOBUF, JSON = "AVRO", "PROTOBUF", "JSON"


#: How long a number that was not found is not asked for again: bytes that are no messages have many such numbers.
UNKNOWN_FOR_S = 30.0
MAX_UNKNOWN = 100_000


class UnknownSchemaError(Exception):
    """The registry has no schema of this number, or of this subject and version."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another one refers to: the name it uses, and where it is."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema as the registry has it."""

    kind: str
    text: str
    references: tuple[Reference, ...] = ()
    #: Known where it was asked for.
    id: int | None = None
    version: int | None = None


@dataclass(frozen=True)
class SchemaRegistry:
    """A registry, over its REST API. Answers by number never change, so a process asks once.

    Calls raise `ExternalError` where the registry does not answer, and `ConfigError` for what it refuses.
    """

    transport: Transport
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)

    _lock: ClassVar[threading.Lock] = threading.Lock()
    _known: ClassVar[dict[tuple[tuple[str, ...], int], RegisteredSchema]] = {}
    _unknown: ClassVar[dict[tuple[tuple[str, ...], int], float]] = {}

    @classmethod
    def of(cls, settings: Any) -> SchemaRegistry:
        """The registry that resolved settings name."""
        return cls(
            Transport(
                urls=tuple(url.strip().rstrip("/") for url in settings.url.split(",")),
                username=settings.username,
                password=settings.password,
                token=settings.token,
                ca=settings.ca,
                timeout_s=settings.timeout_ms / 1000,
            )
        )

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """The schema of a number; raises `UnknownSchemaError`."""
        if schema_id < 0:
            raise UnknownSchemaError(f"a schema cannot have the number {schema_id}")
        key = (tuple(self.transport.urls), schema_id)
        with self._lock:
            if key in self._known:
                return self._known[key]
            if self._unknown.get(key, -1.0) > self.clock():
                raise UnknownSchemaError(f"the schema registry has no schema {schema_id}")
        try:
            answer = self.transport.send("GET", f"/schemas/ids/{schema_id}")
        except AnswerError as error:
            if error.status != 404:
                raise _refused(f"schema {schema_id}", error) from error
            with self._lock:
                if len(self._unknown) >= MAX_UNKNOWN:
                    self._unknown.clear()
                self._unknown[key] = self.clock() + UNKNOWN_FOR_S
            raise UnknownSchemaError(f"the schema registry has no schema {schema_id}") from error
        found = _schema(answer, schema_id=schema_id)
        self.remember(schema_id, found)
        return found

    def remember(self, schema_id: int, schema: RegisteredSchema) -> None:
        """Have the schema of a number without asking for it, in this process."""
        with self._lock:
            self._known[tuple(self.transport.urls), schema_id] = schema

    def version(self, subject: str, version: str | int = "latest") -> RegisteredSchema:
        """One version of a subject; raises `UnknownSchemaError`."""
        try:
            return _schema(self.transport.send("GET", f"/subjects/{quote(subject, safe='')}/versions/{version}"))
        except AnswerError as error:
            if error.status == 404:
                raise UnknownSchemaError(f"the schema registry: {error.message}") from error
            raise _refused(f"version {version} of subject {subject!r}", error) from error

    def referenced(self, schema: RegisteredSchema) -> list[tuple[str, str]]:
        """Name and text of all schemas that one refers to, those first that others refer to."""
        found: dict[str, str] = {}
        self._collect(schema, found, ())
        return list(found.items())

    def lookup(self, subject: str, schema: RegisteredSchema) -> int:
        """The number of a schema under a subject; raises `UnknownSchemaError` where it is not there."""
        return int(self._lookup(subject, schema)["id"])

    def lookup_version(self, subject: str, schema: RegisteredSchema) -> int:
        """Which version of a subject a schema is; raises `UnknownSchemaError` where it is none."""
        return int(self._lookup(subject, schema)["version"])

    def register(self, subject: str, schema: RegisteredSchema) -> int:
        """Add a schema to a subject, or find it there; its number. Raises `ConfigError` where it is incompatible."""
        try:
            return int(
                self.transport.send("POST", f"/subjects/{quote(subject, safe='')}/versions", _body(schema))["id"]
            )
        except AnswerError as error:
            if error.status == 409:
                raise _incompatible(subject, self.compatibility(subject), error.message) from error
            raise _refused(f"subject {subject!r}", error) from error

    def check(self, subject: str, schema: RegisteredSchema) -> None:
        """Raise `ConfigError` where `register` would; changes nothing."""
        path = f"/compatibility/subjects/{quote(subject, safe='')}/versions?verbose=true"
        try:
            answer = self.transport.send("POST", path, _body(schema))
        except AnswerError as error:
            if error.status == 404:
                return
            raise _refused(f"subject {subject!r}", error) from error
        if not answer.get("is_compatible", True):
            reasons = "; ".join(map(str, answer.get("messages", ()))) or "it does not say why"
            raise _incompatible(subject, self.compatibility(subject), reasons)

    def compatibility(self, subject: str) -> str:
        """What versions of a subject have to be to each other: `BACKWARD`, `FULL`, `NONE`, ..."""
        try:
            answer = self.transport.send("GET", f"/config/{quote(subject, safe='')}?defaultToGlobal=true")
        except AnswerError as error:
            if error.status != 404:
                raise _refused(f"subject {subject!r}", error) from error
            answer = self.transport.send("GET", "/config")
        return str(answer.get("compatibilityLevel") or answer.get("compatibility"))

    def _lookup(self, subject: str, schema: RegisteredSchema) -> Any:
        try:
            return self.transport.send("POST", f"/subjects/{quote(subject, safe='')}", _body(schema))
        except AnswerError as error:
            if error.status == 404:
                raise UnknownSchemaError(f"subject {subject!r} does not have this schema: {error.message}") from error
            raise _refused(f"subject {subject!r}", error) from error

    def _collect(self, schema: RegisteredSchema, found: dict[str, str], within: tuple[str, ...]) -> None:
        for reference in schema.references:
            if reference.name in within:
                raise ConfigError(f"schemas refer to each other in a circle: {' -> '.join((*within, reference.name))}")
            if reference.name in found:
                continue
            problem = REGISTRY_REFERENCES.problem(len(found) + len(within) + 1)
            if problem is not None:
                raise ConfigError(f"the schema registry: {problem}", field="registry")
            inner = self.version(reference.subject, reference.version)
            self._collect(inner, found, (*within, reference.name))
            found[reference.name] = inner.text


def _schema(answer: Any, schema_id: int | None = None) -> RegisteredSchema:
    try:
        references = answer.get("references") or ()
        return RegisteredSchema(
            kind=str(answer.get("schemaType") or AVRO),
            text=str(answer["schema"]),
            references=tuple(Reference(str(r["name"]), str(r["subject"]), int(r["version"])) for r in references),
            id=_number(answer.get("id", schema_id)),
            version=_number(answer.get("version")),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ExternalError(f"the schema registry gave an answer that is no schema: {error!r}") from error


def _number(found: Any) -> int | None:
    return None if found is None else int(found)


def _body(schema: RegisteredSchema) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": schema.text, "schemaType": schema.kind}
    if schema.references:
        body["references"] = [
            {"name": each.name, "subject": each.subject, "version": each.version} for each in schema.references
        ]
    return body


def _refused(what: str, error: AnswerError) -> ConfigError:
    return ConfigError(f"the schema registry refuses {what}: {error.message} (code {error.code})", field="registry")


def _incompatible(subject: str, level: str, reason: str) -> ConfigError:
    return ConfigError(
        f"the schema is incompatible with what subject {subject!r} has ({level}): {reason}", field="registry.subject"
    )
