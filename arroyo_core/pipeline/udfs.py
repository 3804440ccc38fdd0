"""The `udfs` of a pipeline: bundles are opened before anything is typed, and pinned in the plan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol
from urllib.parse import urlsplit

from arroyo_core.api import Origin, Udf
from arroyo_core.api.policy import current_policy
from arroyo_core.api.registry import APPLICATION
from arroyo_core.errors import ArroyoError, PluginError, RefusedError
from arroyo_core.pipeline.document import Scalar, YamlList, YamlMap, YamlValue
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.plan import UdfKind, UdfPin
from arroyo_core.pipeline.spec import NodeSpec, PipelineSpec, UdfSpec
from arroyo_core.plugin import PluginSet

_WORD = re.compile(r"\w+")


class OpenedBundle(Protocol):
    """User functions that were fetched, checked and imported; `pin` says which they are."""

    @property
    def pin(self) -> UdfPin: ...

    @property
    def functions(self) -> Sequence[Udf]:
        """As the pipeline calls them: with the alias before their names."""


class BundleLoader(Protocol):
    """Opens bundles for the planner; `arroyo_core.runtime` has the one that people use."""

    @property
    def allows_unpinned(self) -> bool:
        """Whether a remote bundle may be used though the file does not give its sha256."""

    @property
    def pickled(self) -> Sequence[OpenedBundle]:
        """Functions of the program that makes the plan."""

    def open(self, url: str, *, shown_url: str, sha256: str | None, alias: str | None) -> OpenedBundle:
        """Raises an `ArroyoError` that says what is wrong with the bundle."""


def is_local(url: str) -> bool:
    """Whether a URL names a file of this machine."""
    return "://" not in url or urlsplit(url).scheme in ("file", "local")


def load_udfs(
    pipeline: PipelineSpec,
    loader: BundleLoader | None,
    *,
    plugins: PluginSet,
    environment: Environment,
    mistakes: Mistakes,
) -> tuple[PluginSet, tuple[UdfPin, ...]]:
    """The plugins with the functions of every bundle, and what the plan pins; what is wrong is recorded."""
    distributions = _used_distributions(pipeline.nodes, plugins)
    pins: dict[str, UdfPin] = {}
    for spec in pipeline.udfs:
        opened = _open(spec, loader, environment, mistakes)
        if opened is None:
            continue
        pin = opened.pin
        taken = pins.get(pin.key)
        if taken is not None:
            mistakes.add(
                f"two bundles are called {pin.key!r}: {taken} and {pin}; give each a name of its own with 'as'",
                at=spec.at,
            )
            continue
        try:
            plugins = plugins_with(plugins, opened)
        except PluginError as error:
            mistakes.add(f"{environment.redact(error.message)}; 'as' puts a prefix before its names", at=spec.at)
            continue
        pins[pin.key] = pin
    for opened in loader.pickled if loader is not None else ():
        taken = pins.setdefault(opened.pin.key, opened.pin)
        if taken is not opened.pin:
            mistakes.add(f"two sources of functions are called {taken.key!r}: {taken} and {opened.pin}", at=None)
        try:
            plugins = plugins_with(plugins, opened)
        except PluginError as error:
            mistakes.add(error.message, at=None)
    for pin in distributions:
        if pins.setdefault(pin.key, pin) is not pin:
            mistakes.add(f"two sources of functions are called {pin.key!r}: {pins[pin.key]} and {pin}", at=None)
    return plugins, tuple(pins.values())


def plugins_with(plugins: PluginSet, opened: OpenedBundle) -> PluginSet:
    """The plugins with more functions; raises `PluginError` for a name that is taken."""
    pin = opened.pin
    origin = Origin(f"{pin.kind} {pin.name}", pin.version)
    return replace(plugins, registry=plugins.registry.with_udfs(opened.functions, origin=origin))


def _open(
    spec: UdfSpec, loader: BundleLoader | None, environment: Environment, mistakes: Mistakes
) -> OpenedBundle | None:
    try:
        current_policy().check_code(f"the bundle {spec.shown_url}")
    except RefusedError as error:
        mistakes.add(error.message, at=spec.url_at, value=spec.shown_url)
        return None
    if loader is None:
        mistakes.add("bundles of user functions cannot be loaded here", at=spec.at)
        return None
    if spec.sha256 is None and not is_local(spec.url) and not loader.allows_unpinned:
        mistakes.add(
            "a remote bundle needs its 'sha256', as `arroyo udf push` prints it: else whoever can write there decides "
            "what runs here (--insecure-udfs takes what is there)",
            at=spec.at,
            value=spec.shown_url,
        )
        return None
    try:
        return loader.open(spec.url, shown_url=spec.shown_url, sha256=spec.sha256, alias=spec.alias)
    except ArroyoError as error:
        mistakes.add(environment.redact(str(error)), at=spec.url_at, value=spec.shown_url)
        return None


def _used_distributions(nodes: Iterable[NodeSpec], plugins: PluginSet) -> tuple[UdfPin, ...]:
    """The distributions that have a function whose name occurs in the config of a node, by name.

    A name that only looks like a call counts too: rather a question too many when the distribution changes.
    """
    words = {word for node in nodes for text in texts_of(node.config) for word in _WORD.findall(text.casefold())}
    registry = plugins.registry
    found: dict[Origin, list[str]] = {}
    for name, udf in registry.udfs.items():
        origin = registry.udf_origin(name)
        if origin != APPLICATION and name.casefold() in words:
            found.setdefault(origin, []).append(str(getattr(udf, "signature", name)))
    return tuple(
        UdfPin(
            kind=UdfKind.DISTRIBUTION,
            name=origin.distribution,
            version=origin.version,
            signatures=tuple(sorted(found[origin])),
        )
        for origin in sorted(found, key=lambda origin: origin.distribution)
    )


def texts_of(value: YamlValue | None) -> Iterator[str]:
    """Every text inside a value, keys not included."""
    match value:
        case Scalar():
            yield value.text
        case YamlList():
            for item in value.items:
                yield from texts_of(item)
        case YamlMap():
            for entry in value.entries:
                yield from texts_of(entry.value)
