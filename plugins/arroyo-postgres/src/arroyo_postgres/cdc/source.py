"""`postgres.cdc`: a table of PostgreSQL and its changes, each exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from arroyo_connectors.cdc import CdcSource

from arroyo_core.api import ArroyoSchema, Dataset, OperatorContext, SourceContext, SourceFinishType
from arroyo_core.errors import ArroyoError
from arroyo_core.state import global_table_config
from arroyo_postgres.cdc.log import PostgresLog
from arroyo_postgres.cdc.settings import CdcSettings
from arroyo_postgres.cdc.slots import advance
from arroyo_postgres.cdc.state import PostgresChunk, PostgresPosition

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

COMMITS_TABLE = "c"


class PostgresCdc(CdcSource[PostgresPosition, PostgresChunk]):
    """Reads a slot, and moves it on with what is committed."""

    position_type = PostgresPosition
    chunk_type = PostgresChunk

    def __init__(self, settings: CdcSettings) -> None:
        super().__init__(settings.follow)
        self._settings = settings

    def name(self) -> str:
        return "postgres.cdc"

    def log(self, ctx: SourceContext, position: PostgresPosition | None) -> PostgresLog:
        return PostgresLog(self._settings, ctx, position)

    def tables(self) -> dict[str, TableConfig]:
        commits = global_table_config(COMMITS_TABLE, "where a stopped job is", uses_two_phase_commit=True)
        return super().tables() | commits

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        return {**super().state_settings(inputs), "slot": self._settings.slot}

    def is_committing(self) -> bool:
        return True

    def database(self) -> str:
        return self._settings.server.display()

    def log_fields(self) -> Sequence[tuple[str, str]]:
        fields = [("slot", self._settings.slot), ("publication", self._settings.publication)]
        return [(label, value) for label, value in fields if value]

    def datasets(self) -> Sequence[Dataset]:
        return [self._settings.server.dataset(self._follow.table)]

    def on_read(self, ctx: SourceContext, position: PostgresPosition | None, finish: SourceFinishType) -> None:
        lsn = position.lsn if position is not None else 0
        if finish is not SourceFinishType.CHECKPOINTED and self._settings.slot and lsn:
            ctx.table_manager.insert_committing_data(COMMITS_TABLE, msgspec.json.encode(lsn))

    def handle_commit(self, epoch: int, commit_data: Mapping[str, Mapping[int, bytes]], ctx: OperatorContext) -> None:
        """A source whose data has ended, or that was told to stop, moves its slot on.

        One that runs does so in its stream, two epochs later: it cannot be done here while the stream is open.
        """
        for data in commit_data.get(COMMITS_TABLE, {}).values():
            try:
                advance(self._settings, msgspec.json.decode(data, type=int), ctx.task_info)
            except ArroyoError as error:
                ctx.warn(f"{error}; the server keeps more of its log than it needs to")
