"""What every user function has: a name, a signature, and where it came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

import pyarrow as pa


class Volatility(StrEnum):
    """Whether the same arguments always give the same result."""

    DETERMINISTIC = "deterministic"
    VOLATILE = "volatile"


class SourceKind(StrEnum):
    """How user code came here."""

    #: An installed pip distribution.
    DISTRIBUTION = "distribution"
    #: A wheel, or a zip of one module, fetched by its URL.
    BUNDLE = "bundle"
    #: A function of the driver's own program, sent as a pickle.
    PICKLE = "pickle"


@dataclass(frozen=True, slots=True, kw_only=True)
class UdfSource:
    """Where a user function came from. `sha256` is in hex, and empty for a distribution."""

    kind: SourceKind
    name: str
    version: str = ""
    sha256: str = ""

    def __str__(self) -> str:
        named = " ".join(part for part in (self.kind, self.name, self.version) if part)
        return f"{named} (sha256 {self.sha256[:12]})" if self.sha256 else named


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One argument. A function is not called with a null for an argument that is not nullable."""

    name: str
    type: pa.DataType
    is_nullable: bool = False


@dataclass(frozen=True, kw_only=True)
class UserFunction:
    """A function that pipelines call by its name; its kinds are subclasses."""

    name: str
    parameters: Sequence[Parameter]
    return_type: pa.DataType
    volatility: Volatility = Volatility.DETERMINISTIC
    doc: str = ""
    #: None until it is registered by a distribution, or loaded from a bundle.
    source: UdfSource | None = None

    @property
    def signature(self) -> str:
        """For people: `distance(lat: double, lon: double) -> double`."""
        parameters = ", ".join(
            f"{parameter.name}: {parameter.type}{'?' if parameter.is_nullable else ''}" for parameter in self.parameters
        )
        return f"{self.name}({parameters}) -> {self.return_type}"

    def registered_by(self, distribution: str, version: str) -> Self:
        """The same function, known to come from an installed distribution."""
        return self.at(UdfSource(kind=SourceKind.DISTRIBUTION, name=distribution, version=version))

    def at(self, source: UdfSource, *, prefix: str | None = None) -> Self:
        """The same function, known to come from `source`; called `prefix.name` where there is a prefix."""
        name = f"{prefix}.{self.name}" if prefix else self.name
        return replace(self, source=source, name=name)
