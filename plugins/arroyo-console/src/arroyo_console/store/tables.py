"""The tables of the database, as the newest migration leaves them. Times are in microseconds since 1970."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, MetaData, Table, Text, UniqueConstraint

METADATA = MetaData()

PIPELINES = Table(
    "pipelines",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("version", Integer, nullable=False),
    Column("parallelism", Integer),
    Column("created_us", BigInteger, nullable=False),
    Column("updated_us", BigInteger, nullable=False),
)

VERSIONS = Table(
    "pipeline_versions",
    METADATA,
    Column("pipeline_id", Text, ForeignKey("pipelines.id", ondelete="CASCADE"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("language", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
)

JOBS = Table(
    "jobs",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("pipeline_id", Text, ForeignKey("pipelines.id", ondelete="CASCADE"), nullable=False, unique=True),
    #: Where its checkpoints are, with user and password as the text has them.
    Column("checkpoint_url", Text, nullable=False, server_default=""),
    Column("state", Text, nullable=False),
    Column("error", Text, nullable=False, server_default=""),
    #: Whether somebody wants it to run, and how it is to stop where nobody does.
    Column("is_wanted", Boolean, nullable=False),
    Column("stop_mode", Text, nullable=False, server_default=""),
    #: Whether it is to start again when it has stopped, and whether with empty state then.
    Column("starts_again", Boolean, nullable=False),
    Column("is_fresh", Boolean, nullable=False),
    #: Unexpected ends in a row, and in all.
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("restarts", Integer, nullable=False, server_default="0"),
    Column("start_after_us", BigInteger, nullable=False, server_default="0"),
    Column("created_us", BigInteger, nullable=False),
    Index("jobs_by_state", "state"),
)

RUNS = Table(
    "runs",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("job_id", Text, ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("host", Text, nullable=False),
    Column("boot_id", Text, nullable=False),
    Column("pid", Integer),
    #: With the pid, names one process of a boot: pids are used again.
    Column("process_start", BigInteger),
    Column("started_us", BigInteger, nullable=False),
    Column("ended_us", BigInteger),
    Column("exit_code", Integer),
    Column("reason", Text, nullable=False, server_default=""),
    Column("is_restart", Boolean, nullable=False),
    # Two supervisors cannot both start the same run.
    UniqueConstraint("job_id", "number", name="runs_once"),
)

CHANGES = Table(
    "state_changes",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("job_id", Text, ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Index("changes_by_job", "job_id", "id"),
)

LEASES = Table(
    "leases",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    #: Of the server, in words.
    Column("shown", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("boot_id", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("process_start", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
)
