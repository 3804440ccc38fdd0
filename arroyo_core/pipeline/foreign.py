"""The boundary to plugins: whatever their code raises becomes a mistake at a node."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from arroyo_core.api import Origin
from arroyo_core.errors import ArroyoError, ConfigError, Location, OutOfTimeError
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.field_paths import locate_field
from arroyo_core.pipeline.mistakes import Mistakes, nearest
from arroyo_core.pipeline.spec import NodeSpec

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PluginBoundary:
    """Calls plugin code for one node. Nothing of the environment gets through to a message."""

    node: NodeSpec
    origin: Origin
    environment: Environment
    mistakes: Mistakes

    def call(self, step: str, function: Callable[[], T], *, expected: type[T]) -> T | None:
        """The result of `function`; None after recording what it raised, or that it is not an `expected`."""
        try:
            result = function()
        except (KeyboardInterrupt, OutOfTimeError, MemoryError):
            raise
        except ConfigError as error:
            self._add_config_error(error)
            return None
        except ArroyoError as error:
            self.mistakes.add(self.environment.redact(error.message), at=self.node.operator_at)
            return None
        # BaseException: a panic of a Rust library is not an Exception.
        except BaseException as error:
            self.add_fault(f"{step} failed with {type(error).__name__}: {error}", details=_traceback(error))
            return None
        if not isinstance(result, expected):
            self.add_fault(f"{step} returned {type(result).__name__}, not {expected.__name__}")
            return None
        return result

    def add_fault(self, what: str, *, details: str | None = None) -> None:
        """Record a mistake of the plugin's author."""
        self.mistakes.add(
            self.environment.redact(f"operator {self.node.operator!r}: {what}; this is a fault of {self.origin}"),
            at=self.node.operator_at,
            value=self.node.operator,
            details=self.environment.redact(details) if details else None,
        )

    def _add_config_error(self, error: ConfigError) -> None:
        redact = self.environment.redact
        allowed = tuple(redact(str(choice)) for choice in error.allowed)
        value = redact(str(error.value)) if error.value is not None else None
        suggestion = redact(error.suggestion) if error.suggestion else None
        self.mistakes.add(
            redact(error.message),
            at=self._place(error.field),
            value=value,
            allowed=allowed,
            suggestion=suggestion or (nearest(value, allowed) if value else None),
        )

    def _place(self, field: str | None) -> Location:
        if self.node.config is None:
            return self.node.operator_at
        return locate_field(self.node.config, field) if field else self.node.operator_at


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))
