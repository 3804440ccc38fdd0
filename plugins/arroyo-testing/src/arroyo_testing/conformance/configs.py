"""Reads configs as the planner does, from YAML to the operator's message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import yaml
from google.protobuf.message import Message

from arroyo_core.api import ConstructedOperator, OperatorConstructor, Registry
from arroyo_core.errors import ConfigError, Location
from arroyo_core.pipeline.config import read_config
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.loader import load_document
from arroyo_core.pipeline.lookup_configs import resolve_lookups
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.resolution import encode_config

_FILE = "config.yaml"


def read_message(
    operator: str, config: Mapping[str, Any], config_type: type[Message], registry: Registry | None = None
) -> Message:
    """The message for a config, with those of lookups in it; raises `InvalidPipelineError` with every mistake."""
    mistakes = Mistakes()
    # A dollar sign is only special in files that people write.
    text = yaml.safe_dump(_plain(config), sort_keys=False, allow_unicode=True).replace("$", "$$")
    document = load_document(text, file=_FILE, environment=Environment({}), mistakes=mistakes)
    at = Location(_FILE, 1, 1)
    lookups = registry.lookups if registry is not None else {}
    what = f"the config of {operator}"
    message = read_config(document, config_type, at=at, what=what, mistakes=mistakes, lookups=lookups)
    mistakes.raise_if_any()
    if message is None:
        raise ConfigError(f"the config of {operator} cannot be read")
    return message


def maker(
    operator: str, config: Mapping[str, Any], constructor: OperatorConstructor[Any], registry: Registry
) -> Callable[[], ConstructedOperator]:
    """A function that makes the operator, again and again, from the config as it is resolved once."""
    read = read_message(operator, config, constructor.config_type, registry)
    resolved = resolve_lookups(constructor.resolve(read), registry)
    constructor.with_config(resolved, registry)
    data = encode_config(resolved)
    return lambda: constructor.with_config(constructor.config_type.FromString(data), registry)


def _plain(value: Any) -> Any:
    """Built-in types only: YAML has no tuples and no paths."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
