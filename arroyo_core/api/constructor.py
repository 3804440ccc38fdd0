"""How an operator is made from its config."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from google.protobuf.message import Message

from arroyo_core.api.operator import ArrowOperator, DisplayableOperator, SourceOperator

if TYPE_CHECKING:
    from arroyo_core.api.registry import Registry

ConfigT = TypeVar("ConfigT", bound=Message)


@dataclass(frozen=True, slots=True)
class ConstructedOperator:
    """Either a source or an operator."""

    source: SourceOperator | None = None
    operator: ArrowOperator | None = None

    @classmethod
    def from_source(cls, source: SourceOperator) -> ConstructedOperator:
        return cls(source=source)

    @classmethod
    def from_operator(cls, operator: ArrowOperator) -> ConstructedOperator:
        return cls(operator=operator)

    @property
    def is_source(self) -> bool:
        return self.source is not None

    @property
    def inner(self) -> SourceOperator | ArrowOperator:
        inner = self.source or self.operator
        if inner is None:
            raise ValueError("neither a source nor an operator")
        return inner

    def name(self) -> str:
        return self.inner.name()

    def display(self) -> DisplayableOperator:
        return self.inner.display()


class OperatorConstructor(ABC, Generic[ConfigT]):
    """Makes an operator from a protobuf config.

    `config_type` is any protobuf message class; the `config` of a YAML node is its JSON form.
    Importing the constructor must be cheap: client libraries are imported in `with_config` or later.
    """

    config_type: ClassVar[type[Message]]
    #: The least and the greatest number of inputs (None for no limit) of all that it makes: (0, 0) for a source.
    #: None where the config decides. Editors and the reference know it from here, the planner asks the operator.
    inputs: ClassVar[tuple[int, int | None] | None] = None
    #: Whether it makes sinks.
    is_sink: ClassVar[bool] = False

    def config_of(self, given: Mapping[str, object]) -> Mapping[str, object]:
        """The config of a call in Python, as a file would have it: by default what is given, field by field.

        Override it to take shorter forms as well, such as `count="n"`; whatever it does not know it passes on, for the
        planner to report. Called where a program declares a node, and never for a file.
        """
        return given

    def resolve(self, config: ConfigT) -> ConfigT:
        """The config that the plan carries, with what only the driver knows: absolute paths, a listing of files.

        Called once, on the driver, before `with_config`. Must not change the config that it is given: return
        a copy. Raises `ConfigError` naming the field. By default the config stays as it is.
        """
        return config

    @abstractmethod
    def with_config(self, config: ConfigT, registry: Registry) -> ConstructedOperator:
        """Check the config and make the operator; raise `ConfigError` naming the field otherwise.

        Called with the resolved config, on the driver to plan and on executors to run, any number of times.
        Must not change the config, and must have no effect on the outside.
        """
