"""`Console`: all that the HTTP API and the pages do. Both call it, and nothing else.

Its methods may be called from any thread; they wait for files, databases and processes, so that whoever serves from an
event loop calls them in a thread. They raise `ConsoleError`.
"""

from __future__ import annotations

from arroyo_console.values import (
    Checkpoint,
    Connector,
    Finding,
    Function,
    Graph,
    Job,
    JobError,
    JobMetrics,
    JobSummary,
    Language,
    Letter,
    LetterSummary,
    LogLines,
    Page,
    Pipeline,
    PipelineVersion,
    Plugin,
    Preview,
    ReplayResult,
    ServerInfo,
    TableInfo,
    TableRows,
    Validation,
    Wish,
)

#: Of a list, where nobody asks for another number.
PAGE = 50


class Console:
    """The pipelines of a database and their jobs."""

    def info(self) -> ServerInfo:
        raise NotImplementedError

    # Texts: they are planned in a process of their own; nothing of them runs unless the server allows code.

    def validate(self, text: str, language: Language) -> Validation:
        raise NotImplementedError

    def graph(self, text: str, language: Language) -> Graph:
        """The plan of a text; its problems where it has any."""
        raise NotImplementedError

    def preview(
        self, text: str, language: Language, *, node: str | None = None, rows: int = 100, seconds: float = 10.0
    ) -> Preview:
        """Run a text on a sample: rows of one node, or of all. Writes nothing: sinks are replaced."""
        raise NotImplementedError

    # Pipelines

    def pipelines(self, *, search: str = "", limit: int = PAGE, after: str | None = None) -> Page[Pipeline]:
        """Newest first; `search` is a part of the name."""
        raise NotImplementedError

    def pipeline(self, pipeline_id: str) -> Pipeline:
        raise NotImplementedError

    def create_pipeline(
        self, text: str, language: Language, *, parallelism: int | None = None, start: bool = True
    ) -> Pipeline:
        """Raises `InvalidTextError` with the problems of a text, and `ConflictError` for a name that is taken."""
        raise NotImplementedError

    def change_pipeline(
        self,
        pipeline_id: str,
        *,
        text: str | None = None,
        language: Language | None = None,
        parallelism: int | None = None,
        wish: Wish | None = None,
    ) -> Pipeline:
        """Another text counts from the next start; another parallelism at once, where the job runs."""
        raise NotImplementedError

    def restart_pipeline(self, pipeline_id: str, *, is_forced: bool = False, is_fresh: bool = False) -> Pipeline:
        """Stop it at a checkpoint (forced: kill it) and start it again; fresh: without its state."""
        raise NotImplementedError

    def delete_pipeline(self, pipeline_id: str) -> None:
        """Of a job that does not run; its checkpoints and its output stay."""
        raise NotImplementedError

    def pipeline_versions(self, pipeline_id: str) -> tuple[PipelineVersion, ...]:
        """Newest first."""
        raise NotImplementedError

    # Jobs

    def jobs(self, *, limit: int = PAGE, after: str | None = None) -> Page[JobSummary]:
        raise NotImplementedError

    def job(self, job_id: str) -> Job:
        raise NotImplementedError

    def job_graph(self, job_id: str) -> Graph:
        """The plan of the text that the job was last started with."""
        raise NotImplementedError

    def job_metrics(self, job_id: str, *, history: int = 120) -> JobMetrics:
        raise NotImplementedError

    def job_errors(self, job_id: str, *, limit: int = PAGE) -> tuple[JobError, ...]:
        """Newest first."""
        raise NotImplementedError

    def job_log(self, job_id: str, *, lines: int = 200, offset: int | None = None, run: int | None = None) -> LogLines:
        """The end of the log of a run, by default the newest; with `offset` what came since."""
        raise NotImplementedError

    def job_output(
        self, job_id: str, *, lines: int = 200, offset: int | None = None, run: int | None = None
    ) -> LogLines:
        """The same of what its sinks print (`std.stdout`)."""
        raise NotImplementedError

    # Checkpoints and state

    def checkpoints(self, job_id: str, *, limit: int = PAGE) -> tuple[Checkpoint, ...]:
        """Newest first."""
        raise NotImplementedError

    def checkpoint(self, job_id: str, epoch: int) -> Checkpoint:
        """One, with what each operator wrote."""
        raise NotImplementedError

    def tables(self, job_id: str, *, epoch: int | None = None) -> tuple[TableInfo, ...]:
        raise NotImplementedError

    def table_rows(
        self,
        job_id: str,
        node: str,
        table: str,
        *,
        epoch: int | None = None,
        key: str | None = None,
        limit: int = 100,
    ) -> TableRows:
        """Rows of a table, at the newest epoch by default; with `key` those that have this value in any column."""
        raise NotImplementedError

    def table_difference(
        self,
        job_id: str,
        node: str,
        table: str,
        *,
        before: int | None = None,
        epoch: int | None = None,
        key: str | None = None,
        limit: int = 100,
    ) -> TableRows:
        """What went and came between two epochs; by default the newest and the one before."""
        raise NotImplementedError

    # Dead letters

    def letters(self, job_id: str) -> tuple[LetterSummary, ...]:
        """Those in the folders that the pipeline's sinks write dead letters to, by node."""
        raise NotImplementedError

    def letters_of(
        self, job_id: str, *, node: str | None = None, error: str | None = None, limit: int = 20, is_all: bool = False
    ) -> tuple[Letter, ...]:
        raise NotImplementedError

    def replay_letters(
        self, job_id: str, *, node: str | None = None, error: str | None = None, limit: int | None = None,
        is_dry_run: bool = True,
    ) -> ReplayResult:  # fmt: skip
        """Feed open letters through the newest text of the pipeline."""
        raise NotImplementedError

    # What is installed

    def connectors(self, *, kind: str | None = None) -> tuple[Connector, ...]:
        """All operators, without their schemas and settings."""
        raise NotImplementedError

    def connector(self, name: str) -> Connector:
        raise NotImplementedError

    def functions(self) -> tuple[Function, ...]:
        raise NotImplementedError

    def plugins(self) -> tuple[Plugin, ...]:
        raise NotImplementedError

    def pipeline_schema(self) -> dict[str, object]:
        """The JSON Schema of pipeline files, for completion."""
        raise NotImplementedError

    def doctor(self) -> tuple[Finding, ...]:
        raise NotImplementedError
