"""From configs to operators on rows: what can be checked without knowing the inputs is checked here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from arroyo_core.api import ConstructedOperator, OperatorConstructor, Registry
from arroyo_core.errors import ConfigError
from arroyo_std import rows_pb2
from arroyo_std.rows_pb2 import (
    DeduplicateConfig,
    NeighborsConfig,
    NeighborValue,
    ProcessConfig,
    SqlConfig,
    TopNConfig,
    UpsertConfig,
    WindowFunctionConfig,
)
from arroyo_std.std_pb2 import OrderKey

if TYPE_CHECKING:
    from arroyo_std.key_tails import Neighbor
    from arroyo_std.ranking import OrderBy

#: How far a row may look: so many rows of each key are kept.
_MAX_OFFSET = 1_000_000


class DeduplicateConstructor(OperatorConstructor[DeduplicateConfig]):
    """Makes `std.deduplicate`."""

    config_type = DeduplicateConfig
    inputs = (1, 1)

    def with_config(self, config: DeduplicateConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.deduplicate import Deduplicate, DeduplicateSettings

        _require(config.keys, "keys", "a list of columns")
        if config.ttl < 0:
            raise ConfigError("a duration must not be negative", field="ttl", value=config.ttl)
        return ConstructedOperator.from_operator(
            Deduplicate(
                DeduplicateSettings(
                    keys=tuple(config.keys), keeps_last=config.keep == rows_pb2.last, ttl_us=config.ttl or None
                )
            )
        )


class TopNConstructor(OperatorConstructor[TopNConfig]):
    """Makes `std.top_n`."""

    config_type = TopNConfig
    inputs = (1, 1)

    def with_config(self, config: TopNConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.ranking import Ranking
        from arroyo_std.top_n import TopN

        if config.n <= 0:
            raise ConfigError("n must be more than zero", field="n", value=config.n)
        _require(config.order_by, "order_by", "a list of columns, such as [{column: price, descending: true}]")
        order_by = _order_by(config.order_by)
        ranking = Ranking(
            n=config.n, partition_by=tuple(config.partition_by), order_by=order_by, keeps_ties=config.ties
        )
        return ConstructedOperator.from_operator(TopN(ranking, config.rank_column or None))


class SqlConstructor(OperatorConstructor[SqlConfig]):
    """Makes `std.sql`."""

    config_type = SqlConfig
    inputs = (1, 1)

    def with_config(self, config: SqlConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.sql_query import SqlQuery

        _require(config.query.strip(), "query", "a SELECT over the table input")
        return ConstructedOperator.from_operator(SqlQuery(config.query, registry))


class ProcessConstructor(OperatorConstructor[ProcessConfig]):
    """Makes `std.process`."""

    config_type = ProcessConfig
    inputs = (1, 1)

    def with_config(self, config: ProcessConfig, registry: Registry) -> ConstructedOperator:
        from google.protobuf.json_format import MessageToDict

        from arroyo_std.function_import import all_arguments, make_function, plain_arguments
        from arroyo_std.process import Process

        _require(config.function, "function", "a class as package.module:ClassName")
        arguments = plain_arguments(MessageToDict(config.arguments))
        function = make_function(config.function, arguments)
        return ConstructedOperator.from_operator(
            Process(function, tuple(config.keys), arguments=all_arguments(function, arguments))
        )


class WindowFunctionConstructor(OperatorConstructor[WindowFunctionConfig]):
    """Makes `std.window_function`."""

    config_type = WindowFunctionConfig
    inputs = (1, 1)

    def with_config(self, config: WindowFunctionConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.sql import Expression
        from arroyo_std.window_function import WindowFunction

        # `as` is a word of Python's, so the attribute cannot be written.
        alias: str = getattr(config, "as")
        if config.expression and config.expressions:
            raise ConfigError("'expression' and 'expressions' exclude each other", field="expressions")
        if not config.expressions:
            _require(config.expression, "expression", "SQL with a window function, such as row_number() OVER (...)")
            _require(alias, "as", "a name for the column of 'expression'")
            expressions = [Expression(name=alias, sql=config.expression, field="expression")]
        else:
            if alias:
                raise ConfigError("'as' names the column of 'expression'; 'expressions' have names", field="as")
            expressions = [
                Expression(name=each.name, sql=each.sql, field=f"expressions.{each.name}")
                for each in config.expressions
            ]
        return ConstructedOperator.from_operator(WindowFunction(expressions, registry))


class NeighborsConstructor(OperatorConstructor[NeighborsConfig]):
    """Makes `std.neighbors`."""

    config_type = NeighborsConfig
    inputs = (1, 1)

    def with_config(self, config: NeighborsConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.neighbors import Neighbors

        if config.ttl < 0:
            raise ConfigError("a duration must not be negative", field="ttl", value=config.ttl)
        _require(config.values, "values", "a list such as [{function: lag, column: price, as: before}]")
        neighbors = [_neighbor(each, f"values[{position}]") for position, each in enumerate(config.values)]
        return ConstructedOperator.from_operator(
            Neighbors(
                neighbors,
                keys=tuple(config.keys),
                order_by=_order_by(config.order_by),
                ttl_us=config.ttl or None,
                registry=registry,
            )
        )


class UpsertConstructor(OperatorConstructor[UpsertConfig]):
    """Makes `std.upsert`."""

    config_type = UpsertConfig
    inputs = (1, 1)

    def with_config(self, config: UpsertConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.upsert import Upsert

        _require(config.keys, "keys", "a list of columns")
        return ConstructedOperator.from_operator(Upsert(tuple(config.keys), config.deleted_column))


def _neighbor(value: NeighborValue, field: str) -> Neighbor:
    from arroyo_std.key_tails import Neighbor

    # `as` is a word of Python's, so the attribute cannot be written.
    name: str = getattr(value, "as")
    _require(value.function, f"{field}.function", "lag or lead")
    _require(value.column, f"{field}.column", "a column")
    _require(name, f"{field}.as", "a name for the column")
    offset = value.offset if value.HasField("offset") else 1
    if not 1 <= offset <= _MAX_OFFSET:
        raise ConfigError(f"an offset is from 1 to {_MAX_OFFSET:,}", field=f"{field}.offset", value=offset)
    return Neighbor(
        name=name,
        column=value.column,
        places=offset if value.function == rows_pb2.lead else -offset,
        default=value.default if value.HasField("default") else None,
        field=field,
    )


def _order_by(keys: Iterable[OrderKey]) -> tuple[OrderBy, ...]:
    from arroyo_std.ranking import OrderBy

    return tuple(
        OrderBy(
            column=each.column,
            field=f"order_by[{position}]",
            is_descending=each.descending,
            nulls_last=each.nulls_last,
        )
        for position, each in enumerate(keys)
    )


def _require(value: object, field: str, expected: str) -> None:
    # The planner checks this for YAML; configs that are made in code come here unchecked.
    if not value:
        raise ConfigError(f"{field!r} is missing: give {expected}", field=field)
