"""`std.upsert`: an updating stream as the last row of each key, for sinks that replace rows by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    DisplayableOperator,
    OperatorContext,
    UnboundedState,
)
from arroyo_core.api.updating import is_updating, retract_mask, without_updating
from arroyo_core.errors import ConfigError
from arroyo_core.state import timestamp_table_config
from arroyo_std.aggregates.groups import Groups
from arroyo_std.columns import check_column, check_unique
from arroyo_std.row_values import ROW_HASH, is_nested, plain_rows, plain_schema, row_hashes
from arroyo_std.setting_texts import names_text, schema_text

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

TABLE = "k"
_ROW = "_row"

Words = npt.NDArray[np.uint64]


class Upsert(ArrowOperator):
    """Sends the row of each key that changed, once per batch; a key whose row was taken back comes as deleted.

    A row that is taken back counts only if it is the key's row: what is taken back after the next row was added, as
    can happen when rows come from several subtasks, changes nothing.
    """

    def __init__(self, keys: Sequence[str], deleted_column: str) -> None:
        self._keys = tuple(keys)
        self._deleted_column = deleted_column

    def name(self) -> str:
        return "std.upsert"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        is_updating(inputs[0])
        stream = without_updating(inputs[0])
        for position, key in enumerate(self._keys):
            check_column(key, stream.names, field=f"keys[{position}]")
            if is_nested(stream.schema.field(key).type) or key == _ROW:
                raise ConfigError(f"column {key!r} cannot be a key", field=f"keys[{position}]", value=key)
        check_unique(self._keys, field="keys")
        if self._deleted_column in stream.names:
            raise ConfigError(
                f"there is a column {self._deleted_column!r} already: give another name",
                field="deleted_column",
                value=self._deleted_column,
            )
        schema = plain_schema(stream.schema).append(pa.field(self._deleted_column, pa.bool_()))
        return ArroyoSchema(schema, stream.timestamp_column, self._keys)

    def routing_keys(self, inputs: Sequence[ArroyoSchema]) -> Sequence[tuple[str, ...] | None]:
        return [self._keys]

    def unbounded_state(self, inputs: Sequence[ArroyoSchema]) -> UnboundedState | None:
        # Of other streams it keeps nothing.
        if not is_updating(inputs[0]):
            return None
        return UnboundedState(
            "it keeps a hash of the row of every key until that row is taken back",
            "make sure that the keys do not become ever more",
        )

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        columns = ArroyoSchema(self._state_schema(inputs[0]), None, self._keys)
        return {TABLE: timestamp_table_config(TABLE, "a hash of the row of each key", timedelta(0), True, columns)}

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        # A row is found again by a hash of all its columns.
        columns = plain_schema(without_updating(inputs[0]).schema)
        return {"keys": names_text(self._keys), "columns": schema_text(columns)}

    def display(self) -> DisplayableOperator:
        return DisplayableOperator(self.name(), [("keys", ", ".join(self._keys))])

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        stream = ctx.input_schemas[0]
        self._plain = plain_schema(without_updating(stream).schema)
        self._is_updating = is_updating(stream)
        self._output = ctx.output_schema.schema
        self._state = self._state_schema(stream)
        self._view = ctx.table_manager.get_last_key_value_table(TABLE)

    def _state_schema(self, stream: ArroyoSchema) -> pa.Schema:
        columns = plain_schema(without_updating(stream).schema)
        return pa.schema([*(columns.field(key) for key in self._keys), pa.field(_ROW, ROW_HASH)])

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        rows = plain_rows(batch, self._plain)
        if rows.num_rows == 0:
            return
        groups = Groups.of_columns([rows.column(key) for key in self._keys], rows.num_rows)
        is_retract = retract_mask(batch)
        places = np.arange(rows.num_rows)
        added = np.full(groups.count, -1, dtype=np.int64)
        # Of several assignments to one place the last remains.
        added[groups.codes[~is_retract]] = places[~is_retract]
        if self._is_updating:
            self._change(rows, groups, added=added, is_retract=is_retract, collector=collector)
        else:
            self._collect(rows, np.sort(added), np.zeros(groups.count, dtype=np.bool_), collector)

    def _change(
        self,
        rows: pa.RecordBatch,
        groups: Groups,
        *,
        added: npt.NDArray[np.int64],
        is_retract: npt.NDArray[np.bool_],
        collector: ArrowCollector,
    ) -> None:
        """Find each key's row after the batch, and send it if it is another one than before."""
        hashes = row_hashes(rows.columns, rows.num_rows)
        words = _words(hashes)
        keys = rows.take(pa.array(groups.first_rows()))
        was_there, former = self._view.get(keys)
        before = np.zeros((groups.count, 2), dtype=np.uint64)
        before[was_there] = _words(former.column(_ROW))
        has_added = added >= 0
        # The row that can be taken back: the last one added, or the one from before the batch.
        current = np.where(has_added[:, None], words[added], before)
        is_there = has_added | was_there
        places = np.arange(rows.num_rows)
        removes = is_retract & is_there[groups.codes] & (places > added[groups.codes])
        removes &= (words == current[groups.codes]).all(axis=1)
        removed = np.full(groups.count, -1, dtype=np.int64)
        removed[groups.codes[removes]] = places[removes]
        is_deleted = removed >= 0
        is_new = has_added & ~is_deleted & ~(was_there & (current == before).all(axis=1))
        is_gone = is_deleted & was_there
        if is_gone.any():
            self._view.delete(keys.filter(pa.array(is_gone)))
        if is_new.any():
            chosen = pa.array(added[is_new])
            columns = [*(rows.column(key).take(chosen) for key in self._keys), hashes.take(chosen)]
            self._view.upsert(pa.RecordBatch.from_arrays(columns, schema=self._state))
        deciding = np.where(is_gone, removed, added)[is_new | is_gone]
        order = np.argsort(deciding)
        self._collect(rows, deciding[order], is_gone[is_new | is_gone][order], collector)

    def _collect(
        self,
        rows: pa.RecordBatch,
        chosen: npt.NDArray[np.int64],
        is_deleted: npt.NDArray[np.bool_],
        collector: ArrowCollector,
    ) -> None:
        found = rows.take(pa.array(chosen))
        collector.collect(pa.RecordBatch.from_arrays([*found.columns, pa.array(is_deleted)], schema=self._output))


def _words(hashes: pa.FixedSizeBinaryArray) -> Words:
    """Hashes as two numbers each."""
    words: Words = np.frombuffer(hashes.buffers()[1], dtype="<u8").reshape(-1, 2)
    return words[hashes.offset : hashes.offset + len(hashes)]
