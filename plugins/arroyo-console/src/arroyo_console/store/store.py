"""Reads and writes the database. Each method is one transaction, and may be called from any thread."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, Engine, Select, create_engine, delete, event, func, insert, select, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, NoSuchModuleError, OperationalError

from arroyo_console.errors import ConflictError, UnknownError
from arroyo_console.store.migrations import migrate
from arroyo_console.store.records import (
    JobRecord,
    PipelineRecord,
    RunRecord,
    change_of,
    job_record,
    run_record,
    version_of,
)
from arroyo_console.store.tables import CHANGES, JOBS, PIPELINES, RUNS, VERSIONS
from arroyo_console.values import Language, PipelineVersion, State, StateChange
from arroyo_core.errors import SetupError

#: Of the changes of a job's state the newest are kept.
KEPT_CHANGES = 500


def open_store(url: str) -> Store:
    """The store at a database URL, with its tables up to date; raises `SetupError` where there is none to be had."""
    try:
        parsed = make_url(url)
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.get_backend_name() not in ("sqlite", "postgresql"):
            raise SetupError(
                f"--database {parsed.render_as_string(hide_password=True)}: "
                "sqlite:///PATH and postgresql://HOST/NAME are supported"
            )
        engine = create_engine(parsed, pool_pre_ping=True, connect_args=_connect_args(parsed.get_backend_name()))
        if engine.dialect.name == "sqlite":
            event.listen(engine, "connect", _prepare_sqlite)
        migrate(engine)
    except ModuleNotFoundError as error:
        raise SetupError(f"{error.name} is not installed: pip install 'arroyo-console[postgres]'") from error
    except (ArgumentError, NoSuchModuleError) as error:
        raise SetupError(f"--database is not the URL of a database: {error}") from error
    except OperationalError as error:
        shown = make_url(url).render_as_string(hide_password=True)
        raise SetupError(f"the database {shown} cannot be used: {error.orig}") from error
    return Store(engine)


def sqlite_url(path: Path) -> str:
    return f"sqlite:///{path}"


class Store:
    """The database of one server, or of several of which one supervises."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def close(self) -> None:
        self.engine.dispose()

    # Pipelines

    def add_pipeline(
        self, name: str, language: Language, text: str, *, parallelism: int | None, now_us: int
    ) -> PipelineRecord:
        """A pipeline and its job, which nobody wants to run yet. Raises `ConflictError` for a name that is taken."""
        pipeline_id, job_id = new_id("pl"), new_id("job")
        try:
            with self.engine.begin() as connection:
                connection.execute(
                    insert(PIPELINES).values(
                        id=pipeline_id,
                        name=name,
                        version=1,
                        parallelism=parallelism,
                        created_us=now_us,
                        updated_us=now_us,
                    )
                )
                _add_version(connection, pipeline_id, 1, language, text, now_us)
                connection.execute(
                    insert(JOBS).values(
                        id=job_id,
                        pipeline_id=pipeline_id,
                        state=State.CREATED,
                        is_wanted=False,
                        starts_again=False,
                        is_fresh=False,
                        created_us=now_us,
                    )
                )
                _add_change(connection, job_id, State.CREATED, "", now_us)
        except IntegrityError as error:
            raise ConflictError(f"there is a pipeline {name!r} already", where="name") from error
        return self.pipeline(pipeline_id)

    def pipeline(self, pipeline_id: str) -> PipelineRecord:
        return self._one(_pipelines().where(PIPELINES.c.id == pipeline_id), f"there is no pipeline {pipeline_id!r}")

    def pipeline_of(self, job_id: str) -> PipelineRecord:
        return self._one(_pipelines().where(JOBS.c.id == job_id), f"there is no job {job_id!r}")

    def pipelines(self, *, search: str, limit: int, offset: int) -> tuple[list[PipelineRecord], int]:
        """Newest first, and how many there are in all."""
        meant = PIPELINES.c.name.icontains(search, autoescape=True) if search else PIPELINES.c.id.is_not(None)
        query = _pipelines().where(meant).order_by(PIPELINES.c.created_us.desc(), PIPELINES.c.id)
        with self.engine.connect() as connection:
            total = connection.scalar(select(func.count()).select_from(PIPELINES).where(meant)) or 0
            rows = connection.execute(query.limit(limit).offset(offset)).mappings()
            return [_pipeline(row) for row in rows], total

    def change_pipeline(
        self,
        pipeline_id: str,
        *,
        name: str | None = None,
        text: tuple[Language, str] | None = None,
        parallelism: int | None = None,
        now_us: int,
    ) -> None:
        """Another text is another version. Raises `ConflictError` for a name that is taken."""
        changed: dict[str, Any] = {"updated_us": now_us}
        if name is not None:
            changed["name"] = name
        if parallelism is not None:
            changed["parallelism"] = parallelism
        try:
            with self.engine.begin() as connection:
                if text is not None:
                    last = connection.scalar(select(PIPELINES.c.version).where(PIPELINES.c.id == pipeline_id))
                    changed["version"] = (last or 0) + 1
                    _add_version(connection, pipeline_id, changed["version"], *text, now_us)
                connection.execute(update(PIPELINES).where(PIPELINES.c.id == pipeline_id).values(changed))
        except IntegrityError as error:
            raise ConflictError(
                "somebody else has changed the pipeline at the same time, or its new name is taken"
            ) from error

    def versions(self, pipeline_id: str) -> list[PipelineVersion]:
        """Newest first."""
        query = select(VERSIONS).where(VERSIONS.c.pipeline_id == pipeline_id).order_by(VERSIONS.c.version.desc())
        with self.engine.connect() as connection:
            return [version_of(row) for row in connection.execute(query).mappings()]

    def version(self, pipeline_id: str, version: int) -> PipelineVersion:
        query = select(VERSIONS).where(VERSIONS.c.pipeline_id == pipeline_id, VERSIONS.c.version == version)
        with self.engine.connect() as connection:
            row = connection.execute(query).mappings().first()
        if row is None:
            raise UnknownError(f"pipeline {pipeline_id!r} has no version {version}")
        return version_of(row)

    def delete_pipeline(self, pipeline_id: str) -> None:
        """With its job and all that is known of it."""
        jobs = select(JOBS.c.id).where(JOBS.c.pipeline_id == pipeline_id).scalar_subquery()
        with self.engine.begin() as connection:
            connection.execute(delete(CHANGES).where(CHANGES.c.job_id.in_(jobs)))
            connection.execute(delete(RUNS).where(RUNS.c.job_id.in_(jobs)))
            connection.execute(delete(JOBS).where(JOBS.c.pipeline_id == pipeline_id))
            connection.execute(delete(VERSIONS).where(VERSIONS.c.pipeline_id == pipeline_id))
            connection.execute(delete(PIPELINES).where(PIPELINES.c.id == pipeline_id))

    # Jobs

    def job(self, job_id: str) -> JobRecord:
        return self.pipeline_of(job_id).job

    def active(self) -> list[PipelineRecord]:
        """The jobs that a supervisor looks after: those that run, and those that are to."""
        states = [state.value for state in State if state.is_active]
        query = _pipelines().where(JOBS.c.is_wanted | JOBS.c.state.in_(states))
        with self.engine.connect() as connection:
            return [_pipeline(row) for row in connection.execute(query).mappings()]

    def change_job(
        self, job_id: str, *, now_us: int, state: State | None = None, reason: str = "", **fields: Any
    ) -> None:
        """Set fields of the table `jobs`; another state is added to the history."""
        with self.engine.begin() as connection:
            if state is not None:
                fields["state"] = state
                before = connection.scalar(select(JOBS.c.state).where(JOBS.c.id == job_id))
                if before is not None and (before != state or reason):
                    _add_change(connection, job_id, state, reason, now_us)
            if fields:
                connection.execute(update(JOBS).where(JOBS.c.id == job_id).values(fields))

    def changes(self, job_id: str) -> list[StateChange]:
        """Newest first."""
        query = select(CHANGES).where(CHANGES.c.job_id == job_id).order_by(CHANGES.c.id.desc())
        with self.engine.connect() as connection:
            return [change_of(row) for row in connection.execute(query).mappings()]

    # Runs

    def add_run(
        self, job_id: str, number: int, *, version: int, host: str, boot_id: str, is_restart: bool, now_us: int
    ) -> str:
        """The id of a run that is about to be started; raises `ConflictError` where another server starts it."""
        run_id = new_id("run")
        values = {"id": run_id, "job_id": job_id, "number": number, "version": version, "host": host}
        values |= {"boot_id": boot_id, "started_us": now_us, "is_restart": is_restart}
        try:
            with self.engine.begin() as connection:
                connection.execute(insert(RUNS).values(values))
        except IntegrityError as error:
            raise ConflictError(f"run {number} of job {job_id!r} was started by another server") from error
        return run_id

    def change_run(self, run_id: str, **fields: Any) -> None:
        with self.engine.begin() as connection:
            connection.execute(update(RUNS).where(RUNS.c.id == run_id).values(fields))

    def runs(self, job_id: str) -> list[RunRecord]:
        """Newest first."""
        query = select(RUNS).where(RUNS.c.job_id == job_id).order_by(RUNS.c.number.desc())
        with self.engine.connect() as connection:
            found = [run_record(row) for row in connection.execute(query).mappings()]
        return [run for run in found if run is not None]

    def _one(self, query: Select[Any], missing: str) -> PipelineRecord:
        with self.engine.connect() as connection:
            row = connection.execute(query).mappings().first()
        if row is None:
            raise UnknownError(missing)
        return _pipeline(row)


def new_id(prefix: str) -> str:
    """Ids are made of letters and digits only: they are names of folders too."""
    return f"{prefix}_{uuid4().hex[:20]}"


def _pipelines() -> Select[Any]:
    """Pipelines with their newest version, their job and its newest run."""
    newest = select(func.max(RUNS.c.number)).where(RUNS.c.job_id == JOBS.c.id).correlate(JOBS).scalar_subquery()
    jobs = [column.label(f"job_{column.name}") for column in JOBS.c]
    runs = [column.label(f"run_{column.name}") for column in RUNS.c]
    return (
        select(PIPELINES, VERSIONS.c.language, VERSIONS.c.text, *jobs, *runs)
        .join(VERSIONS, (VERSIONS.c.pipeline_id == PIPELINES.c.id) & (VERSIONS.c.version == PIPELINES.c.version))
        .join(JOBS, JOBS.c.pipeline_id == PIPELINES.c.id)
        .outerjoin(RUNS, (RUNS.c.job_id == JOBS.c.id) & (RUNS.c.number == newest))
    )


def _pipeline(row: Any) -> PipelineRecord:
    return PipelineRecord(
        id=row["id"],
        name=row["name"],
        version=row["version"],
        parallelism=row["parallelism"],
        created_us=row["created_us"],
        updated_us=row["updated_us"],
        language=Language(row["language"]),
        text=row["text"],
        job=job_record(row, "job_"),
        run=run_record(row, "run_"),
    )


def _add_version(
    connection: Connection, pipeline_id: str, version: int, language: Language, text: str, now_us: int
) -> None:
    values = {"pipeline_id": pipeline_id, "version": version, "language": language, "text": text}
    connection.execute(insert(VERSIONS).values({**values, "created_us": now_us}))


def _add_change(connection: Connection, job_id: str, state: State, reason: str, now_us: int) -> None:
    connection.execute(insert(CHANGES).values(job_id=job_id, at_us=now_us, state=state, reason=reason))
    kept = select(CHANGES.c.id).where(CHANGES.c.job_id == job_id).order_by(CHANGES.c.id.desc())
    oldest = connection.scalar(kept.offset(KEPT_CHANGES - 1).limit(1))
    if oldest is not None:
        connection.execute(delete(CHANGES).where(CHANGES.c.job_id == job_id, CHANGES.c.id < oldest))


def _connect_args(backend: str) -> dict[str, Any]:
    return {"timeout": 30} if backend == "sqlite" else {"connect_timeout": 10}


def _prepare_sqlite(connection: sqlite3.Connection, _: object) -> None:
    # Readers do not wait for the writer.
    with contextlib.closing(connection.cursor()) as cursor:
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.execute("PRAGMA foreign_keys=ON")
