"""The server, who asks it, and what is installed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Role(StrEnum):
    """What somebody may do. Who may write may read."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """Some of many; `next` is what to ask with for those that follow, None at the end."""

    items: tuple[T, ...]
    total: int
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingDoc:
    """A setting of an operator."""

    name: str
    type: str
    text: str
    is_required: bool
    default: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """An installed operator. `kind` is source, operator or sink; the JSON Schema is that of its config."""

    name: str
    kind: str
    distribution: str
    version: str
    summary: str
    text: str = ""
    settings: tuple[SettingDoc, ...] = ()
    schema: Mapping[str, Any] = field(default_factory=dict)
    example: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """An installed user function."""

    name: str
    signature: str
    distribution: str
    version: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """An installed distribution of plugins; `error` says why it could not be loaded."""

    name: str
    distribution: str
    version: str
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A line of `arroyo doctor`; `level` is ok, warning or failed."""

    check: str
    level: str
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """What this server is."""

    version: str
    #: Whether this server supervises jobs; another one with the same database may.
    is_supervisor: bool
    supervisor: str
    allows_code: bool
    master: str
    languages: tuple[str, ...]
