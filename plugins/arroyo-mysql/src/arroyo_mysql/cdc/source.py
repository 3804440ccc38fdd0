"""`mysql.cdc`: a table of MySQL or MariaDB and its changes, each exactly once."""

from __future__ import annotations

from collections.abc import Sequence

from arroyo_connectors.cdc import CdcSource

from arroyo_core.api import Dataset, SourceContext
from arroyo_mysql.cdc.log import MysqlLog
from arroyo_mysql.cdc.settings import CdcSettings
from arroyo_mysql.cdc.state import MysqlChunk, MysqlPosition


class MysqlCdc(CdcSource[MysqlPosition, MysqlChunk]):
    """Reads the binlog, as a replica does."""

    position_type = MysqlPosition
    chunk_type = MysqlChunk

    def __init__(self, settings: CdcSettings) -> None:
        super().__init__(settings.follow)
        self._settings = settings

    def name(self) -> str:
        return "mysql.cdc"

    def log(self, ctx: SourceContext, position: MysqlPosition | None) -> MysqlLog:
        return MysqlLog(self._settings, ctx, position)

    def database(self) -> str:
        return self._settings.server.display()

    def datasets(self) -> Sequence[Dataset]:
        name = self._settings.name
        return [self._settings.server.dataset(name.schema, name.name)]
