"""Slots: made, looked at before they are read, and moved on after a job has stopped."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from arroyo_connectors.cdc import InterruptedByControlError

from arroyo_core.api import SourceContext, TaskInfo
from arroyo_core.errors import ConfigError, ExternalError
from arroyo_postgres.cdc import catalogue
from arroyo_postgres.cdc.changes import ChangeReader
from arroyo_postgres.cdc.lsn import format_lsn
from arroyo_postgres.cdc.replication import ReplicationStream
from arroyo_postgres.cdc.settings import CdcSettings
from arroyo_postgres.cdc.state import PostgresPosition

if TYPE_CHECKING:
    import psycopg

#: What PostgreSQL keeps of a session's name.
_NAME_BYTES = 63
#: How long a session that was ended may take to leave its slot.
_LEAVE_SECONDS = 10.0
_LOOK_SECONDS = 0.05


def session_name(task: TaskInfo) -> str:
    """What the sessions of a source are called; by it a source knows those of its own former lives."""
    name = f"arroyo {task.job_id} {task.operator_id}".encode("ascii", "replace")
    return name[:_NAME_BYTES].decode("ascii")


def find_start(settings: CdcSettings, connection: psycopg.Connection[Any], ctx: SourceContext) -> int:
    """Where the slot of a job that begins is: made, with its publication, where that is asked for.

    What a start before this one has made, and then failed, is used.
    """
    _check_publication(settings, connection, makes=settings.creates)
    slot = catalogue.read_slot(connection, settings.slot)
    if slot is None:
        if not settings.creates:
            raise ConfigError(
                f"there is no slot {settings.slot!r}: run SELECT pg_create_logical_replication_slot('{settings.slot}', "
                "'pgoutput'), or write create: true",
                field="slot",
                value=settings.slot,
            )
        statement = f"select pg_create_logical_replication_slot('{settings.slot}', 'pgoutput')"
        run_patiently(connection, statement, ctx)
        slot = catalogue.read_slot(connection, settings.slot)
        if slot is None:
            raise ExternalError(f"slot {settings.slot!r} was dropped as soon as it was made")
    catalogue.check_slot(slot, settings.slot, connection.info.dbname)
    return slot.confirmed_lsn


def open_changes(
    settings: CdcSettings, connection: psycopg.Connection[Any], ctx: SourceContext, position: PostgresPosition
) -> ChangeReader:
    """The changes from this position on. Raises `ConfigError` where the server does not have them any more."""
    _check_publication(settings, connection, makes=False)
    name = session_name(ctx.task_info)
    slot = _free_slot(settings, connection, ctx, name)
    lost = f"changes after {format_lsn(position.lsn)} were not read, and they are lost for this job"
    again = "start the job over: without its state, with a new snapshot, and with another slot or this one dropped"
    if slot is None:
        raise ConfigError(
            f"slot {settings.slot!r}, which this job has read from, is not there any more: {lost}; {again}",
            field="slot",
            value=settings.slot,
        )
    catalogue.check_slot(slot, settings.slot, connection.info.dbname)
    if slot.confirmed_lsn > position.lsn:
        raise ConfigError(
            f"slot {settings.slot!r} is at {format_lsn(slot.confirmed_lsn)}, this job at {format_lsn(position.lsn)}: "
            f"somebody else has read from it, or it was made again. {lost[0].upper()}{lost[1:]}; {again}",
            field="slot",
            value=settings.slot,
        )
    stream = ReplicationStream(
        settings.server, slot=settings.slot, publication=settings.publication, lsn=position.lsn, name=name
    )
    if position.system and stream.system != position.system:
        stream.close()
        raise ConfigError(
            f"the server is another one than this job has read from: its identifier is {stream.system}, and was "
            f"{position.system}; positions of one mean nothing to the other: {again}",
            field="connection",
        )
    return ChangeReader(
        settings,
        stream,
        lsn=position.lsn,
        read_of_next=position.read_of_next,
        until_lsn=position.until_lsn,
        warn=ctx.warn,
    )


def advance(settings: CdcSettings, lsn: int, task: TaskInfo) -> None:
    """Let the slot of a source that has stopped forget what was committed before `lsn`. Raises `ArroyoError`."""
    doing = f"cannot move slot {settings.slot!r} on"
    with settings.server.connect(name="arroyo commit") as connection, settings.server.translating(doing):
        deadline = time.monotonic() + _LEAVE_SECONDS
        while True:
            slot = catalogue.read_slot(connection, settings.slot)
            if slot is None or slot.confirmed_lsn >= lsn:
                return
            if slot.active_pid is None:
                connection.execute("select pg_replication_slot_advance(%s, %s)", [settings.slot, format_lsn(lsn)])
                return
            if time.monotonic() > deadline:
                raise ExternalError(f"{doing}: process {slot.active_pid} of the server reads it")
            if time.monotonic() > deadline - _LEAVE_SECONDS / 2:
                # Of a process that has not noticed that the source has stopped.
                _end_own_session(connection, slot.active_pid, session_name(task))
            time.sleep(_LOOK_SECONDS)


def run_patiently(connection: psycopg.Connection[Any], statement: str, ctx: SourceContext) -> None:
    """Run a statement that may have to wait for others; cancelled where the epoch ends before.

    Raises `InterruptedByControlError` then, and errors of the driver.
    """
    from psycopg.errors import error_from_result
    from psycopg.pq import ExecStatus

    pgconn = connection.pgconn
    pgconn.send_query(statement.encode())
    pgconn.flush()
    interrupted = False
    while pgconn.is_busy():
        if ctx.wait(_LOOK_SECONDS) is not None and not interrupted:
            interrupted = True
            connection.cancel_safe()
        if interrupted:
            time.sleep(_LOOK_SECONDS)
        pgconn.consume_input()
    failure = None
    while (result := pgconn.get_result()) is not None:
        if result.status == ExecStatus.FATAL_ERROR:
            failure = error_from_result(result)
    if interrupted:
        raise InterruptedByControlError
    if failure is not None:
        raise failure


def _check_publication(settings: CdcSettings, connection: psycopg.Connection[Any], *, makes: bool) -> None:
    inserts = settings.follow.inserts_only
    if makes and not catalogue.has_publication(connection, settings.publication):
        catalogue.make_publication(connection, settings.publication, settings.table, inserts=inserts)
    catalogue.check_publication(connection, settings.publication, settings.table, inserts=inserts)


def _free_slot(
    settings: CdcSettings, connection: psycopg.Connection[Any], ctx: SourceContext, name: str
) -> catalogue.Slot | None:
    """The slot, when nobody reads it. A session of a former life of this source is ended: it reads for nobody."""
    deadline = time.monotonic() + _LEAVE_SECONDS
    while True:
        slot = catalogue.read_slot(connection, settings.slot)
        if slot is None or slot.active_pid is None:
            return slot
        other = _end_own_session(connection, slot.active_pid, name)
        if time.monotonic() > deadline:
            raise ExternalError(
                f"slot {settings.slot!r} is read by another session, {other!r} (process {slot.active_pid} of the "
                "server): a slot serves one source"
            )
        if ctx.wait(_LOOK_SECONDS) is not None:
            raise InterruptedByControlError


def _end_own_session(connection: psycopg.Connection[Any], pid: int, name: str) -> str:
    """End a session that has this name; returns what it is called."""
    found = connection.execute("select application_name from pg_stat_activity where pid = %s", [pid]).fetchone()
    if found is not None and found[0] == name:
        connection.execute("select pg_terminate_backend(%s)", [pid])
    return str(found[0]) if found is not None else ""
