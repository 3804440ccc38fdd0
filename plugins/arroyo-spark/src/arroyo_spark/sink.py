"""`spark.sink`: staged Parquet that Spark's own writer commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    CheckpointBarrier,
    Dataset,
    DisplayableOperator,
    Guarantee,
    OperatorContext,
    SignalMessage,
)
from arroyo_core.api.updating import is_updating
from arroyo_core.api.urls import absolute_url
from arroyo_core.errors import ArroyoError, ConfigError, DataError, ExternalError
from arroyo_core.state import global_table_config
from arroyo_spark.lineage import table_dataset
from arroyo_spark.sessions import driver_session
from arroyo_spark.spark_pb2 import Mode, SinkConfig
from arroyo_spark.staging import EpochFiles, StagedRows, decode, encode, epoch_folder, spark_url

if TYPE_CHECKING:
    from pyspark.sql import DataFrameWriter

    from arroyo_core.state import TableConfig

TABLE = "files"
_STARTED = "started"


def resolve_sink(config: SinkConfig) -> SinkConfig:
    """A copy with an absolute folder for staging, which is the same for executors elsewhere."""
    resolved = SinkConfig()
    resolved.CopyFrom(config)
    if config.staging:
        resolved.staging = absolute_url(config.staging)
    if config.path:
        resolved.path = absolute_url(config.path)
    return resolved


def check_sink(config: SinkConfig) -> SinkConfig:
    """Raises `ConfigError` for a place that is not one."""
    if bool(config.table) == bool(config.path):
        raise ConfigError("either table or path is needed", field="table", value=config.table or None)
    if not config.staging:
        raise ConfigError("staging is needed: a folder for what is not committed yet", field="staging")
    return config


class SparkSink(ArrowOperator):
    """Stages rows, and has Spark write them when their epoch is committed: at least once."""

    def __init__(self, config: SinkConfig) -> None:
        self._config = config
        self._rows: StagedRows | None = None

    def name(self) -> str:
        return "spark.sink"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        if is_updating(inputs[0]):
            raise ConfigError("the input is updating: it takes back rows, and tables of Spark only gain rows here")
        for column in inputs[0].schema:
            if pa.types.is_unsigned_integer(column.type) or pa.types.is_time(column.type):
                raise ConfigError(
                    f"column {column.name!r} is {column.type}, which Spark has no type for: cast it, with std.project"
                )
        return inputs[0]

    def is_sink(self) -> bool:
        return True

    def is_committing(self) -> bool:
        return True

    def commits_with_jobs(self) -> bool:
        return True

    def lives_on(self) -> bool:
        return True

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        return dict(global_table_config(TABLE, "files to commit", uses_two_phase_commit=True))

    def guarantee(self) -> Guarantee:
        return Guarantee.AT_LEAST_ONCE

    def guarantee_reason(self) -> str:
        return (
            "Spark's writer cannot tell whether it wrote an epoch before: after a failure at that moment it comes again"
        )

    def display(self) -> DisplayableOperator:
        config = self._config
        place = ("table", config.table) if config.table else ("path", config.path)
        mode = Mode.Name.Name(config.mode)
        return DisplayableOperator(
            self.name(), [place, ("format", config.format or "that of the table"), ("mode", mode)]
        )

    def datasets(self) -> Sequence[Dataset]:
        config = self._config
        return [table_dataset(config.table) if config.table else Dataset.at(config.path)]

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        if self._rows is None:
            self._rows = StagedRows(
                self._config.staging,
                ctx.task_info,
                ctx.epoch,
                state_id=ctx.table_manager.state_id,
                schema=ctx.input_schemas[0].schema,
            )
        self._rows.write(batch)

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        staged = [] if self._rows is None else self._rows.close()
        self._rows = None
        view = ctx.table_manager.get_global_keyed_state(TABLE)
        is_first = not view.get(_STARTED)
        if is_first and ctx.task_info.task_index == 0:
            view.insert(_STARTED, True)
        ctx.table_manager.insert_committing_data(TABLE, encode(staged, is_first=is_first))

    def handle_commit(self, epoch: int, commit_data: Mapping[str, Mapping[int, bytes]], ctx: OperatorContext) -> None:
        folder = epoch_folder(self._config.staging, ctx.task_info, epoch, state_id=ctx.table_manager.state_id)
        files, is_first = decode(commit_data.get(TABLE, {}).values(), folder)
        replaces = is_first and self._config.mode == Mode.overwrite
        if not files and not replaces:
            return
        staged = EpochFiles(self._config.staging, ctx.task_info, epoch, state_id=ctx.table_manager.state_id)
        if not staged.is_written:
            self._write(files, ctx, replaces=replaces)
            staged.note_written()
        staged.clean()

    def on_close(
        self, final_message: SignalMessage | None, ctx: OperatorContext, collector: ArrowCollector
    ) -> SignalMessage | None:
        if final_message is None and self._rows is not None:
            self._rows.abort()
        return final_message

    def _write(self, files: Sequence[str], ctx: OperatorContext, *, replaces: bool) -> None:
        spark = driver_session()
        schema = spark_columns(ctx.input_schemas[0].schema)
        rows = spark.createDataFrame([], schema)
        if files:
            rows = spark.read.schema(schema).parquet(*map(spark_url, files))
        writer: DataFrameWriter = rows.write.mode("overwrite" if replaces else "append").options(**self._config.options)
        if self._config.format:
            writer = writer.format(self._config.format)
        place = self._config.table or spark_url(self._config.path)
        try:
            if self._config.table:
                writer.saveAsTable(self._config.table)
            else:
                writer.save(place)
        except Exception as error:
            raise refused(place, error) from error


def spark_columns(schema: pa.Schema) -> Any:
    """The columns as Spark types: an epoch need not have a row to tell them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def refused(place: str, error: Exception) -> ArroyoError:
    """Why Spark does not write, in one line: an outage, unless it says that it knows the format or the table not."""
    from pyspark.errors import AnalysisException

    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    # The first line of what the JVM raises says only that it did.
    reason = next((line for line in lines if not line.startswith("An error occurred while")), type(error).__name__)
    message = f"Spark could not write to {place}: {reason}"
    is_lasting = isinstance(error, AnalysisException) or "NotFoundException" in reason
    return DataError(message) if is_lasting else ExternalError(message)
