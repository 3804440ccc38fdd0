"""Makes each node's operator from its config, through the plugin that registered it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from arroyo_core.api import ArroyoSchema, ConstructedOperator, DisplayableOperator, Guarantee, Registry
from arroyo_core.api.registry import APPLICATION
from arroyo_core.errors import PluginError
from arroyo_core.pipeline.config import read_config
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.field_options import OptionError
from arroyo_core.pipeline.foreign import PluginBoundary
from arroyo_core.pipeline.guarantees import NodeGuarantee
from arroyo_core.pipeline.lookup_configs import resolve_lookups
from arroyo_core.pipeline.mistakes import Mistakes, nearest
from arroyo_core.pipeline.plan import Setting
from arroyo_core.pipeline.resolution import encode_config, warn_of_changed_config
from arroyo_core.pipeline.secret_fields import hide_values, hide_written
from arroyo_core.pipeline.spec import NodeSpec
from arroyo_core.plugin import PluginSet, known_elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedOperator:
    """A node with its operator. `is_sink` and the bounds on its inputs are the operator's answers."""

    spec: NodeSpec
    constructed: ConstructedOperator
    config_type: type[Message]
    config: bytes
    boundary: PluginBoundary
    is_sink: bool
    least_inputs: int
    most_inputs: int | None

    @property
    def is_source(self) -> bool:
        return self.constructed.is_source

    def display(self) -> DisplayableOperator:
        """What the operator shows of itself, without values of the environment."""
        found = self.boundary.call("display()", self.constructed.display, expected=DisplayableOperator)
        if found is None:
            return DisplayableOperator(self.spec.operator or "")
        redact = self.boundary.environment.redact
        fields = tuple((str(label), redact(str(text))) for label, text in found.fields)
        return DisplayableOperator(redact(found.name), fields)

    def guarantee(self) -> NodeGuarantee:
        """What the operator answers, without values of the environment; nothing is guaranteed where it fails."""
        inner = self.constructed.inner
        level = self.boundary.call("guarantee()", inner.guarantee, expected=Guarantee)
        reason = self.boundary.call("guarantee_reason()", inner.guarantee_reason, expected=str)
        if level is None or reason is None:
            return NodeGuarantee(Guarantee.NONE, "the operator fails to say what it guarantees")
        return NodeGuarantee(level, self.boundary.environment.redact(reason), is_end=self.is_source or self.is_sink)

    @property
    def is_given(self) -> bool:
        """Whether its rows come with the run."""
        source = self.constructed.source
        if source is None:
            return False
        return bool(self.boundary.call("given_table()", lambda: source.given_table() is not None, expected=bool))

    @property
    def commits_with_jobs(self) -> bool:
        operator = self.constructed.operator
        if operator is None:
            return False
        return bool(self.boundary.call("commits_with_jobs()", operator.commits_with_jobs, expected=bool))

    def lives_on(self) -> bool:
        """Whether live workers keep it from epoch to epoch; not where it fails to say so."""
        return bool(self.boundary.call("lives_on()", self.constructed.inner.lives_on, expected=bool))

    def settings(self, inputs: Sequence[ArroyoSchema]) -> dict[str, Setting]:
        """The settings that its state depends on, shown without values of the environment."""
        inner = self.constructed.inner
        found = self.boundary.call("state_settings()", lambda: dict(inner.state_settings(inputs)), expected=dict)
        redact = self.boundary.environment.redact
        settings = {}
        for label, value in (found or {}).items():
            is_parts = isinstance(value, Mapping)
            texts = [label, *value, *value.values()] if is_parts else [label, value]
            if not all(isinstance(text, str) for text in texts):
                self.boundary.add_fault(
                    f"state_settings() returned {label!r}: {value!r}, and must return texts by label, or parts by name"
                )
                continue
            settings[label] = Setting.of_parts(value, redact) if is_parts else Setting.of(value, text=redact(value))
        return settings


def construct_operator(
    node: NodeSpec, *, plugins: PluginSet, environment: Environment, mistakes: Mistakes
) -> PlannedOperator | None:
    """The operator of a node, None after recording why there is none."""
    if node.operator is None:
        return None
    try:
        constructor = plugins.constructor(node.operator)
    except PluginError as error:
        _add_unknown_operator(node, error, plugins, mistakes)
        return None
    origin = plugins.origin(node.operator) if node.operator in plugins.registry.constructors else APPLICATION
    boundary = PluginBoundary(node, origin, environment, mistakes)
    config_type = getattr(constructor, "config_type", None)
    if not (isinstance(config_type, type) and issubclass(config_type, Message)):
        boundary.add_fault("its constructor's config_type is not a protobuf message class")
        return None
    registry = plugins.registry
    descriptor = cast(Descriptor, config_type.DESCRIPTOR)
    hide_written(node.config, descriptor, environment, mistakes, lookups=registry.lookups)
    message = _read_message(node, config_type, boundary, registry)
    if message is None:
        return None
    own = boundary.call("resolve", lambda: constructor.resolve(message), expected=config_type)
    if own is None:
        return None
    resolved = boundary.call("resolve of a lookup", lambda: resolve_lookups(own, registry), expected=config_type)
    if resolved is None:
        return None
    # The constructor may have found some: a file with a password.
    hide_values(resolved, environment.redaction)
    before = encode_config(resolved)
    constructed = boundary.call(
        "with_config", lambda: constructor.with_config(resolved, registry), expected=ConstructedOperator
    )
    if constructed is None:
        return None
    config = encode_config(resolved)
    if config != before:
        warn_of_changed_config(node.operator)
    return _describe(node, constructed, config_type, config, boundary)


def _read_message(
    node: NodeSpec, config_type: type[Message], boundary: PluginBoundary, registry: Registry
) -> Message | None:
    try:
        return read_config(
            node.config,
            config_type,
            at=node.operator_at,
            what=f"the config of {node.operator}",
            mistakes=boundary.mistakes,
            lookups=registry.lookups,
        )
    except OptionError as error:
        boundary.add_fault(str(error))
        return None


def _describe(
    node: NodeSpec,
    constructed: ConstructedOperator,
    config_type: type[Message],
    config: bytes,
    boundary: PluginBoundary,
) -> PlannedOperator | None:
    is_sink: bool | None = False
    bounds: tuple[int, int | None] | None = (0, 0)
    if (constructed.source is None) == (constructed.operator is None):
        boundary.add_fault("with_config must return either a source or an operator")
        return None
    if constructed.operator is not None:
        is_sink = boundary.call("is_sink()", constructed.operator.is_sink, expected=bool)
        bounds = boundary.call("input_count()", constructed.operator.input_count, expected=tuple)
    if is_sink is None or bounds is None:
        return None
    least, most = bounds
    return PlannedOperator(
        spec=node,
        constructed=constructed,
        config_type=config_type,
        config=config,
        boundary=boundary,
        is_sink=is_sink,
        least_inputs=least,
        most_inputs=most,
    )


def _add_unknown_operator(node: NodeSpec, error: PluginError, plugins: PluginSet, mistakes: Mistakes) -> None:
    name = str(node.operator)
    known = tuple(sorted(plugins.registry.constructors))
    prefix = name.partition(".")[0]
    if name in plugins.conflicts or any(report.name == prefix and report.error for report in plugins.reports):
        near = None if name in plugins.conflicts else nearest(name, _siblings(prefix, known))
        mistakes.add(error.message, at=node.operator_at, value=name, suggestion=near)
        return
    is_blocked = any(report.name == prefix and report.is_blocked for report in plugins.reports)
    if is_blocked:
        mistakes.add(error.message, at=node.operator_at, value=name)
        return
    siblings = _siblings(prefix, known)
    distribution = known_elsewhere("operators").get(prefix)
    if not siblings and distribution is not None:
        mistakes.add(
            f"operator {name!r} needs the plugin {distribution}, which is not installed: pip install {distribution}",
            at=node.operator_at,
            value=name,
        )
        return
    mistakes.add(
        f"there is no operator {name!r}" + ("" if "." in name else "; its name has the form plugin.operator"),
        at=node.operator_at,
        value=name,
        allowed=siblings or known,
        suggestion=nearest(name, siblings) or nearest(name, known) or _by_last_part(name, known),
    )


def _siblings(prefix: str, known: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(name for name in known if name.partition(".")[0] == prefix))


def _by_last_part(name: str, known: tuple[str, ...]) -> str | None:
    """The operator with that last part: the prefix was forgotten, or another engine's was used."""
    last = {choice.partition(".")[2]: choice for choice in reversed(known)}
    found = nearest(name.rpartition(".")[2], last)
    return last[found] if found else None
