"""A stream of changes from a place on; an error that says what is lost where the server has none."""

from __future__ import annotations

from arroyo_core.api import SourceContext, TaskInfo
from arroyo_core.api.hashing import hash_bytes
from arroyo_mysql.cdc import catalogue
from arroyo_mysql.cdc.binlog_stream import BinlogStream
from arroyo_mysql.cdc.changes import ChangeReader
from arroyo_mysql.cdc.places import Place
from arroyo_mysql.cdc.settings import CdcSettings
from arroyo_mysql.cdc.state import MysqlPosition
from arroyo_mysql.cdc.tables import BinlogFacts
from arroyo_mysql.connection import Session


def replica_number(settings: CdcSettings, task: TaskInfo) -> int:
    """The number of the source as a replica: in the upper half, which people do not use."""
    if settings.server_id is not None:
        return settings.server_id
    return 1 << 31 | hash_bytes(f"{task.job_id}\0{task.operator_id}".encode()) & 0x7FFFFFFF


def open_changes(
    settings: CdcSettings, session: Session, ctx: SourceContext, position: MysqlPosition, place: Place
) -> ChangeReader:
    """The changes behind a place. Raises `ConfigError` where the server does not have them, or not as they must be."""
    catalogue.check_binlog(session, settings.name.schema)
    facts = BinlogFacts(charsets=catalogue.charsets(session), folds_case=catalogue.folds_case(session))
    stream = BinlogStream(
        settings.server,
        place,
        server_id=replica_number(settings, ctx.task_info),
        is_mariadb=settings.table.is_mariadb,
    )
    return ChangeReader(
        settings,
        stream,
        facts,
        place=place,
        begun=position.begun,
        prepared=position.prepared,
        until=position.until,
        warn=ctx.warn,
    )
