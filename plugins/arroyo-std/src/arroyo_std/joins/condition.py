"""What a join asks of two rows beside equal keys: an expression of SQL over the columns of both."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api import Registry
from arroyo_core.errors import ConfigError
from arroyo_std.joins.layout import JoinLayout, Mask
from arroyo_std.sql import CompiledExpressions, Expression, check_expressions, compile_expressions


@dataclass(frozen=True, slots=True)
class Condition:
    """As the config has it, under `condition`; with the functions that it may call."""

    sql: str
    registry: Registry

    def check(self, layout: JoinLayout) -> None:
        """For plan time. Raises `ConfigError` where it is no condition over the columns of pairs."""
        found = check_expressions([self._expression], layout.pair_schema, self.registry).schema.field(0).type
        if not pa.types.is_boolean(found):
            raise ConfigError(f"the condition is {found}, not boolean", field="condition", value=self.sql)

    def start(self, layout: JoinLayout) -> StartedCondition:
        """For run time."""
        return StartedCondition(compile_expressions([self._expression], layout.pair_schema, self.registry))

    @property
    def _expression(self) -> Expression:
        return Expression(name="condition", sql=self.sql, field="condition")


class StartedCondition:
    """A condition over batches of pairs. For one thread at a time."""

    def __init__(self, compiled: CompiledExpressions) -> None:
        self._compiled = compiled

    def mask(self, pairs: pa.RecordBatch) -> Mask:
        """Which pairs it holds for; it does not where it is NULL."""
        found = pc.fill_null(self._compiled.evaluate(pairs).column(0), False)
        mask: Mask = found.to_numpy(zero_copy_only=False)
        return mask
