"""`Registry`: which operators, lookups and UDFs there are, and who brought them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from arroyo_core.api.constructor import OperatorConstructor
from arroyo_core.api.lookup import LookupConstructor
from arroyo_core.errors import PluginError


class Udf(Protocol):
    """A user function; `arroyo_core.udf` makes them."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Origin:
    """The distribution a registration came from."""

    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"


#: Registered by code of the application, not by an installed distribution.
APPLICATION = Origin("the application", "")


class Registry:
    """Maps names of operators and lookups to constructors, and UDF names to UDFs. A taken name is an error."""

    def __init__(self) -> None:
        self._constructors: dict[str, OperatorConstructor[Any]] = {}
        self._lookups: dict[str, LookupConstructor[Any]] = {}
        self._disputed_lookups: dict[str, str] = {}
        self._disputed_udfs: dict[str, str] = {}
        self._udfs: dict[str, Udf] = {}
        self._origins: dict[tuple[str, str], Origin] = {}
        self._current = APPLICATION

    @property
    def constructors(self) -> Mapping[str, OperatorConstructor[Any]]:
        """A read-only view."""
        return MappingProxyType(self._constructors)

    @property
    def lookups(self) -> Mapping[str, LookupConstructor[Any]]:
        """A read-only view."""
        return MappingProxyType(self._lookups)

    @property
    def udfs(self) -> Mapping[str, Udf]:
        """A read-only view."""
        return MappingProxyType(self._udfs)

    def add(self, name: str, constructor: OperatorConstructor[Any]) -> None:
        """Register an operator as `plugin.operator`; raises `PluginError` where the name is taken or malformed."""
        self._check_name("operator", name)
        self._claim("operator", name)
        self._constructors[name] = constructor

    def add_lookup(self, name: str, constructor: LookupConstructor[Any]) -> None:
        """Register a lookup as `plugin.lookup`; raises `PluginError` where the name is taken or malformed.

        Names of lookups and of operators do not clash.
        """
        self._check_name("lookup", name)
        self._claim("lookup", name)
        self._lookups[name] = constructor

    def lookup(self, name: str) -> LookupConstructor[Any]:
        """The constructor of a lookup; raises `PluginError` saying why there is none."""
        if name in self._disputed_lookups:
            raise PluginError(self._disputed_lookups[name])
        if name not in self._lookups:
            raise PluginError(f"there is no lookup {name!r}")
        return self._lookups[name]

    def withdraw_lookup(self, name: str, reason: str) -> None:
        """Nobody gets a lookup that two distributions claim; the name stays taken."""
        self._lookups.pop(name, None)
        self._disputed_lookups[name] = reason

    def add_udf(self, udf: Udf) -> None:
        """Register a UDF under its own name; raises `PluginError` where it is taken."""
        self._claim("UDF", udf.name)
        self._udfs[udf.name] = udf

    def withdraw_udf(self, name: str, reason: str) -> None:
        """Nobody gets a UDF that two distributions claim; the name stays taken."""
        self._udfs.pop(name, None)
        self._disputed_udfs[name] = reason

    @property
    def disputed_udfs(self) -> Mapping[str, str]:
        """UDFs that nobody gets, and why."""
        return MappingProxyType(self._disputed_udfs)

    def find_udf(self, name: str) -> Udf | None:
        """The UDF of this name; raises `PluginError` where two distributions claim it."""
        if name in self._disputed_udfs:
            raise PluginError(self._disputed_udfs[name])
        return self._udfs.get(name)

    def with_udfs(self, functions: Iterable[Udf], *, origin: Origin = APPLICATION) -> Registry:
        """A copy that has these functions too; raises `PluginError` naming both for a name that is taken."""
        copy = self._copy()
        with copy.registering(origin):
            for function in functions:
                copy.add_udf(function)
        return copy

    def with_constructor(self, name: str, constructor: OperatorConstructor[Any]) -> Registry:
        """A copy in which this is the constructor of an operator, whether there is another one or none."""
        self._check_name("operator", name)
        copy = self._copy()
        copy._origins.setdefault(("operator", name), self._current)
        copy._constructors[name] = constructor
        return copy

    def _copy(self) -> Registry:
        copy = Registry()
        copy._constructors = dict(self._constructors)
        copy._lookups = dict(self._lookups)
        copy._disputed_lookups = dict(self._disputed_lookups)
        copy._disputed_udfs = dict(self._disputed_udfs)
        copy._udfs = dict(self._udfs)
        copy._origins = dict(self._origins)
        return copy

    def udf_origin(self, name: str) -> Origin:
        """Who brought this UDF."""
        return self._origins["UDF", name]

    def origin(self, operator: str) -> Origin:
        """The distribution that registered this operator."""
        return self._origins["operator", operator]

    def lookup_origin(self, name: str) -> Origin:
        """The distribution that registered this lookup."""
        return self._origins["lookup", name]

    @contextmanager
    def registering(self, origin: Origin) -> Iterator[None]:
        """Attribute what is added inside to `origin`."""
        previous, self._current = self._current, origin
        try:
            yield
        finally:
            self._current = previous

    def _check_name(self, kind: str, name: str) -> None:
        if name.count(".") != 1 or not all(part.isidentifier() for part in name.split(".")):
            raise PluginError(f"{kind} name {name!r} of {self._current} is not of the form 'plugin.{kind}'")

    def _claim(self, kind: str, name: str) -> None:
        taken = self._origins.get((kind, name))
        if taken is not None:
            raise PluginError(f"{kind} {name!r} is registered twice: by {taken} and by {self._current}")
        self._origins[kind, name] = self._current
