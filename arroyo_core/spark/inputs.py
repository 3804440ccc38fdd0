"""DataFrames as the input of the first wave.

All inputs become one DataFrame: a row has the columns of its own input, and null for those of the others. What a row
holds decides which subtask it goes to, so that this does not depend on the order of rows, which may be another one when
Spark runs a task again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from arroyo_core.api import GivenPosition
from arroyo_core.errors import SetupError
from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.runtime.given import read_position
from arroyo_core.runtime.request import EpochRequest
from arroyo_core.spark.column_types import check_columns
from arroyo_core.spark.feed import LEADING, NO_INPUT, GivenInputs, InputColumns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: The column by which rows are moved to their subtasks.
TARGET = "target"


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochInputs:
    """What one epoch is given."""

    frames: Mapping[str, DataFrame] = field(default_factory=dict)
    #: Nodes that have read all that there is for them.
    ended: tuple[str, ...] = ()
    positions: Mapping[str, GivenPosition] = field(default_factory=dict)

    @property
    def session(self) -> SparkSession | None:
        """The session of the DataFrames: those of a stream have one of their own."""
        return next((frame.sparkSession for frame in self.frames.values()), None)


class InputGiver(Protocol):
    """Decides which rows an epoch gets; asked once for each run of an epoch, in the thread that runs it."""

    def give(self, plan: Plan, request: EpochRequest) -> EpochInputs | None:
        """None for an epoch that gets no rows."""
        ...

    def waiting(self) -> str:
        """What `give` waits for, in words that change while it does; empty where it does not wait."""
        ...

    def cancel(self) -> None:
        """Make a `give` that waits raise soon, or the next one of this run; called from another thread."""
        ...

    def end(self) -> None:
        """The run of the epoch is over: nobody means it any more with `cancel`."""
        ...


class WholeInputs:
    """DataFrames that are all that there is: one epoch reads them, and none after it."""

    def __init__(self, frames: Mapping[str, DataFrame], plugins: PluginSet) -> None:
        self._frames = frames
        self._plugins = plugins

    def give(self, plan: Plan, request: EpochRequest) -> EpochInputs | None:
        if request.stop is not None or request.budget.interval_ms == 0:
            # An epoch to end at. All subtasks must read, or none: the next DataFrame may be partitioned otherwise.
            return None
        frames, ended = {}, []
        for name, frame in self._frames.items():
            position = read_position(plan, self._plugins, name, request)
            if position is not None and position.stream:
                raise SetupError(
                    f"job {plan.job_id!r} has read batches of the stream {position.stream} for {name!r}, the last was "
                    f"{position.number}: go on with on_batch, or give the pipeline another name"
                )
            if position is None:
                frames[name] = frame
            else:
                ended.append(name)
        return EpochInputs(frames=frames, ended=tuple(ended))

    def waiting(self) -> str:
        return ""

    def cancel(self) -> None:
        return

    def end(self) -> None:
        return


def check_frames(plan: Plan, frames: Mapping[str, DataFrame]) -> None:
    """Raises `DataError` where a DataFrame has not the columns that its node declares."""
    for name, frame in frames.items():
        check_columns(name, frame.schema, plan.nodes[name].output_schema.schema)


def given_inputs(plan: Plan, inputs: EpochInputs) -> GivenInputs:
    """What tasks are told of the DataFrame of `gathered`."""
    columns, first = [], LEADING
    for name in inputs.frames:
        schema = plan.nodes[name].output_schema.schema
        columns.append(InputColumns(name, first, schema))
        first += len(schema)
    return GivenInputs(columns=tuple(columns), ended=inputs.ended, positions=dict(inputs.positions))


def gathered(spark: SparkSession, plan: Plan, inputs: EpochInputs) -> DataFrame:
    """One DataFrame with the rows of all inputs, and `TARGET`, the subtask that each is for.

    There is a row for each subtask, so that all of them run, also for an input without rows.
    """
    from pyspark.sql import functions as sql

    width = plan.wave_parallelism(0)
    seeds = spark.range(0, width, 1, width)
    rows = seeds.select(sql.col("id").cast("int").alias(TARGET), *_columns(plan, inputs, None))
    for number, (name, frame) in enumerate(inputs.frames.items()):
        # A chain may have fewer subtasks than the widest of its wave.
        target = sql.pmod(_spread(plan.nodes[name].output_schema.names, frame), sql.lit(plan.nodes[name].parallelism))
        rows = rows.union(frame.select(target.cast("int").alias(TARGET), *_columns(plan, inputs, number)))
    return rows


def _spread(names: Sequence[str], frame: DataFrame) -> Column:
    """A number for each row, by what it holds; maps have no hash in Spark."""
    from pyspark.sql import functions as sql

    kinds = {column.name: column.dataType.simpleString() for column in frame.schema.fields}
    hashed = [sql.col(quoted(name)) for name in names if "map<" not in kinds[name]]
    return sql.xxhash64(*hashed) if hashed else sql.spark_partition_id()


def _columns(plan: Plan, inputs: EpochInputs, own: int | None) -> Iterator[Column]:
    """The number of the input, and the columns of all of them."""
    from pyspark.sql import functions as sql

    yield sql.lit(NO_INPUT if own is None else own).cast("int").alias("input")
    for number, (name, frame) in enumerate(inputs.frames.items()):
        kinds = {column.name: column.dataType for column in frame.schema.fields}
        for position, column in enumerate(plan.nodes[name].output_schema.names):
            value = sql.col(quoted(column)) if number == own else sql.lit(None).cast(kinds[column])
            yield value.alias(f"c{number}_{position}")


def quoted(name: str) -> str:
    """A column's name for `col`, in which a dot would mean a field of a struct."""
    return "`" + name.replace("`", "``") + "`"


def as_frame(spark: Any, value: DataFrame | str) -> DataFrame:
    """A DataFrame as it is; the name of a table as its DataFrame."""
    return spark.table(value) if isinstance(value, str) else value
