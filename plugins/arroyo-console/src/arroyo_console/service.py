"""`Console`: all that the HTTP API and the pages do. Both call it, and nothing else.

Its methods may be called from any thread; they wait for files, databases and processes, so that whoever serves from an
event loop calls them in a thread. They raise `ConsoleError`.
"""

from __future__ import annotations

import copy
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from arroyo_console.bounds import (
    MAX_LINES,
    MAX_PAGE,
    MAX_ROWS,
    MAX_SECONDS,
    PAGE,
    check_parallelism,
    check_range,
    checked_limit,
    offset_of,
)
from arroyo_console.errors import ConflictError, ConsoleError, InvalidTextError, ReadOnlyError, UnknownError
from arroyo_console.folders import LOG, OUTPUT, Folders
from arroyo_console.looking import journals, letters, state
from arroyo_console.looking.catalog import Catalog
from arroyo_console.looking.logs import read_lines
from arroyo_console.planning.texts import Texts, graph_of_run
from arroyo_console.store import Store
from arroyo_console.store.lease import Lease
from arroyo_console.store.records import PipelineRecord, RunRecord
from arroyo_console.summaries import shown_pipeline, summary_of
from arroyo_console.supervision.asking import ask_to_rescale, driver_of
from arroyo_console.supervision.launching import LaunchSettings
from arroyo_console.supervision.supervisor import Supervisor
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
    Role,
    ServerInfo,
    State,
    TableInfo,
    TableRows,
    Validation,
    Wish,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a console is made of."""

    store: Store
    folders: Folders
    lease: Lease
    supervisor: Supervisor
    texts: Texts
    catalog: Catalog
    launch: LaunchSettings
    environment: Mapping[str, str]


class Console:
    """The pipelines of a database and their jobs."""

    def __init__(self, parts: Parts) -> None:
        self._store = parts.store
        self._folders = parts.folders
        self._lease = parts.lease
        self._supervisor = parts.supervisor
        self._texts = parts.texts
        self._catalog = parts.catalog
        self._launch = parts.launch
        self._environment = parts.environment
        self._role = Role.WRITE

    def as_role(self, role: Role) -> Console:
        """The same for somebody of this role: who may only read gets `ReadOnlyError` for all that changes something."""
        other = copy.copy(self)
        other._role = role
        return other

    def start(self) -> None:
        """Supervise the jobs of the database from now on, unless another server does."""
        self._supervisor.start()

    def stop(self) -> None:
        """Supervise no more; jobs go on."""
        self._supervisor.stop()
        self._store.close()

    def info(self) -> ServerInfo:
        return ServerInfo(
            version=version("arroyo-console"),
            is_supervisor=self._lease.is_held,
            supervisor=self._lease.holder(),
            allows_code=self._texts.settings.allows_code,
            master="in process" if self._launch.is_in_process else self._launch.master or "that of spark-defaults.conf",
            languages=tuple(Language),
        )

    # Texts: they are planned in a process of their own; nothing of them runs unless the server allows code.

    def validate(self, text: str, language: Language) -> Validation:
        return Validation(problems=self._texts.graph(text, language).problems)

    def graph(self, text: str, language: Language) -> Graph:
        """The plan of a text; its problems where it has any."""
        return self._texts.graph(text, language)

    def preview(
        self, text: str, language: Language, *, node: str | None = None, rows: int = 100, seconds: float = 10.0
    ) -> Preview:
        """Run a text on a sample: rows of one node, or of all. Writes nothing: sinks are replaced."""
        self._check_role()
        check_range("rows", rows, 1, MAX_ROWS)
        check_range("seconds", seconds, 1, MAX_SECONDS)
        return self._texts.preview(text, language, node=node, rows=rows, seconds=seconds)

    # Pipelines

    def pipelines(self, *, search: str = "", limit: int = PAGE, after: str | None = None) -> Page[Pipeline]:
        """Newest first; `search` is a part of the name."""
        offset = offset_of(after)
        found, total = self._store.pipelines(search=search, limit=checked_limit(limit), offset=offset)
        shown = tuple(self._shown(each) for each in found)
        end = offset + len(shown)
        return Page(items=shown, total=total, next=str(end) if shown and end < total else None)

    def pipeline(self, pipeline_id: str) -> Pipeline:
        return self._shown(self._store.pipeline(pipeline_id))

    def create_pipeline(
        self, text: str, language: Language, *, parallelism: int | None = None, start: bool = True
    ) -> Pipeline:
        """Raises `InvalidTextError` with the problems of a text, and `ConflictError` for a name that is taken."""
        self._check_writable()
        check_parallelism(parallelism)
        name = self._checked_name(text, language)
        made = self._store.add_pipeline(name, language, text, parallelism=parallelism, now_us=_now_us())
        if start:
            self._start(made.job.id)
        return self.pipeline(made.id)

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
        self._check_writable()
        check_parallelism(parallelism)
        found = self._store.pipeline(pipeline_id)
        if text is not None:
            chosen = language or found.language
            name = self._checked_name(text, chosen)
            if name != found.name and found.run is not None:
                raise ConflictError(
                    f"the pipeline is called {found.name!r}, and its state with it: {name!r} would be another job; "
                    "create another pipeline",
                    where="text",
                )
            self._store.change_pipeline(found.id, name=name, text=(chosen, text), now_us=_now_us())
        elif language is not None and language is not found.language:
            raise ConsoleError("another language needs another text", where="language")
        if parallelism is not None:
            self._store.change_pipeline(found.id, parallelism=parallelism, now_us=_now_us())
            if found.job.state is State.RUNNING and not ask_to_rescale(found, parallelism):
                raise ConflictError("the job has just ended, or starts: it has the new parallelism from its next start")
        if wish is Wish.START:
            self._start(found.job.id)
        elif wish is not None:
            self._stop(found, wish)
        return self.pipeline(pipeline_id)

    def restart_pipeline(self, pipeline_id: str, *, is_forced: bool = False, is_fresh: bool = False) -> Pipeline:
        """Stop it at a checkpoint (forced: kill it) and start it again; fresh: without its state."""
        self._check_writable()
        found = self._store.pipeline(pipeline_id)
        if found.job.state.has_process:
            self._store.change_job(
                found.job.id,
                is_wanted=False,
                starts_again=True,
                is_fresh=is_fresh,
                stop_mode=Wish.KILL if is_forced else Wish.CHECKPOINT,
                state=State.STOPPING,
                reason="it was asked to start again",
                now_us=_now_us(),
            )
        else:
            self._store.change_job(found.job.id, is_fresh=is_fresh, now_us=_now_us())
            self._start(found.job.id)
        self._supervisor.wake()
        return self.pipeline(pipeline_id)

    def delete_pipeline(self, pipeline_id: str) -> None:
        """Of a job that does not run; its checkpoints and its output stay."""
        self._check_writable()
        found = self._store.pipeline(pipeline_id)
        if found.job.is_wanted or found.job.state.is_active:
            raise ConflictError(f"the job is {found.job.state}: stop it first")
        self._store.delete_pipeline(pipeline_id)
        shutil.rmtree(self._folders.job(found.job.id), ignore_errors=True)

    def pipeline_versions(self, pipeline_id: str) -> tuple[PipelineVersion, ...]:
        """Newest first."""
        return tuple(self._store.versions(self._store.pipeline(pipeline_id).id))

    # Jobs

    def jobs(self, *, limit: int = PAGE, after: str | None = None) -> Page[JobSummary]:
        page = self.pipelines(limit=limit, after=after)
        return Page(items=tuple(each.job for each in page.items), total=page.total, next=page.next)

    def job(self, job_id: str) -> Job:
        found = self._store.pipeline_of(job_id)
        driver = driver_of(found) if found.job.state.has_process else None
        return Job(
            summary=summary_of(found, self._folders),
            runs=tuple(run.shown() for run in self._store.runs(job_id)),
            changes=tuple(self._store.changes(job_id)),
            spark_ui=driver.spark_ui if driver is not None else "",
        )

    def job_graph(self, job_id: str) -> Graph:
        """The plan of the text that the job was last started with."""
        found = self._store.pipeline_of(job_id)
        planned = self._texts.graph(*self._text_of(found), parallelism=found.parallelism)
        if planned.nodes or found.run is None:
            return planned
        # What untrusted mode cannot plan, the run has planned.
        written = journals.read_graph(self._folders.run(job_id, found.run.number))
        return planned if written is None else graph_of_run(written)

    def job_metrics(self, job_id: str, *, history: int = 120) -> JobMetrics:
        check_range("history", history, 1, MAX_LINES)
        found = self._store.pipeline_of(job_id)
        folders = [self._folders.run(job_id, run.number) for run in self._store.runs(job_id)[:20]]
        metrics = journals.read_metrics(job_id, folders, history=history)
        return journals.with_running(metrics, driver_of(found) if found.job.state.has_process else None)

    def job_errors(self, job_id: str, *, limit: int = PAGE) -> tuple[JobError, ...]:
        """Newest first."""
        self._store.pipeline_of(job_id)
        folders = [(run.number, self._folders.run(job_id, run.number)) for run in self._store.runs(job_id)]
        return journals.read_errors(folders, limit=checked_limit(limit))

    def job_log(self, job_id: str, *, lines: int = 200, offset: int | None = None, run: int | None = None) -> LogLines:
        """The end of the log of a run, by default the newest; with `offset` what came since."""
        return self._lines(job_id, LOG, lines=lines, offset=offset, run=run)

    def job_output(
        self, job_id: str, *, lines: int = 200, offset: int | None = None, run: int | None = None
    ) -> LogLines:
        """The same of what its sinks print (`std.stdout`)."""
        return self._lines(job_id, OUTPUT, lines=lines, offset=offset, run=run)

    # Checkpoints and state

    def checkpoints(self, job_id: str, *, limit: int = PAGE) -> tuple[Checkpoint, ...]:
        """Newest first."""
        found = self._store.pipeline_of(job_id)
        if not found.job.checkpoint_url:
            return ()
        return tuple(state.list_checkpoints(state.opened(found), limit=checked_limit(limit)))

    def checkpoint(self, job_id: str, epoch: int) -> Checkpoint:
        """One, with what each operator wrote."""
        return state.read_checkpoint(state.opened(self._store.pipeline_of(job_id)), epoch)

    def tables(self, job_id: str, *, epoch: int | None = None) -> tuple[TableInfo, ...]:
        return state.list_tables(state.load(state.opened(self._store.pipeline_of(job_id)), epoch))

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
        check_range("limit", limit, 1, MAX_ROWS)
        backend = state.opened(self._store.pipeline_of(job_id))
        return state.rows_of(backend, node, table, epoch=epoch, key=key, limit=limit)

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
        check_range("limit", limit, 1, MAX_ROWS)
        backend = state.opened(self._store.pipeline_of(job_id))
        return state.difference(backend, node, table, before=before, epoch=epoch, key=key, limit=limit)

    # Dead letters

    def letters(self, job_id: str) -> tuple[LetterSummary, ...]:
        """Those in the folders that the pipeline's sinks write dead letters to, by node."""
        return letters.summaries(self._letter_urls(self._store.pipeline_of(job_id)))

    def letters_of(
        self, job_id: str, *, node: str | None = None, error: str | None = None, limit: int = 20, is_all: bool = False
    ) -> tuple[Letter, ...]:
        check_range("limit", limit, 1, MAX_ROWS)
        urls = self._letter_urls(self._store.pipeline_of(job_id))
        return letters.letters(urls, node=node, error=error, limit=limit, is_all=is_all)

    def replay_letters(
        self,
        job_id: str,
        *,
        node: str | None = None,
        error: str | None = None,
        limit: int | None = None,
        is_dry_run: bool = True,
    ) -> ReplayResult:
        """Feed open letters through the newest text of the pipeline."""
        self._check_writable()
        if limit is not None:
            check_range("limit", limit, 1, 10**9)
        found = self._store.pipeline_of(job_id)
        ask = partial(letters.replay, job=found.name, node=node, error=error, limit=limit, is_dry_run=is_dry_run)
        lines: list[str] = []
        with self._texts.written(found.text, found.language) as path:
            for url in self._letter_urls(found):
                code, out, said = ask(url, path, environment=self._environment)
                lines += out.splitlines()
                if code:
                    return ReplayResult(is_dry_run=is_dry_run, lines=tuple(lines), error=said.strip())
        return ReplayResult(is_dry_run=is_dry_run, lines=tuple(lines))

    # What is installed

    def connectors(self, *, kind: str | None = None) -> tuple[Connector, ...]:
        """All operators, without their schemas and settings."""
        return self._catalog.connectors(kind=kind)

    def connector(self, name: str) -> Connector:
        return self._catalog.connector(name)

    def functions(self) -> tuple[Function, ...]:
        return self._catalog.functions()

    def plugins(self) -> tuple[Plugin, ...]:
        return self._catalog.plugins()

    def pipeline_schema(self) -> dict[str, object]:
        """The JSON Schema of pipeline files, for completion."""
        return self._catalog.schema()

    def doctor(self) -> tuple[Finding, ...]:
        return self._texts.doctor()

    # The rest

    def _shown(self, record: PipelineRecord) -> Pipeline:
        return shown_pipeline(record, self._folders)

    def _check_role(self) -> None:
        if self._role is not Role.WRITE:
            raise ReadOnlyError("you may read, and not change or run anything: that needs the role 'write'")

    def _check_writable(self) -> None:
        self._check_role()
        if not self._lease.is_held:
            raise ReadOnlyError(
                f"{self._lease.holder() or 'another server'} supervises the jobs of this database; ask that one to "
                "change something"
            )

    def _checked_name(self, text: str, language: Language) -> str:
        """The name of a pipeline that could run; what untrusted mode refuses to look at may be run all the same."""
        graph = self._texts.graph(text, language)
        if any(not problem.is_refusal for problem in graph.problems):
            raise InvalidTextError("the text is not a pipeline that can run", where="text", problems=graph.problems)
        return graph.name or self._texts.name_of(text, language)

    def _start(self, job_id: str) -> None:
        found = self._store.job(job_id)
        if found.is_wanted and found.state.is_active:
            raise ConflictError(f"the job is {found.state} already")
        if found.state is State.STOPPING:
            raise ConflictError("the job stops: start it when it has")
        fields: dict[str, Any] = {"is_wanted": True, "start_after_us": 0, "failures": 0, "error": ""}
        self._store.change_job(job_id, state=State.STARTING, reason="it was asked to start", now_us=_now_us(), **fields)
        self._supervisor.wake()

    def _stop(self, found: PipelineRecord, wish: Wish) -> None:
        if not found.job.state.is_active:
            raise ConflictError(f"the job does not run: it is {found.job.state}")
        self._store.change_job(
            found.job.id,
            is_wanted=False,
            starts_again=False,
            stop_mode=wish,
            state=State.STOPPING if found.job.state.has_process else State.STOPPED,
            reason=f"it was asked to stop ({wish})",
            now_us=_now_us(),
        )
        self._supervisor.wake()

    def _text_of(self, found: PipelineRecord) -> tuple[str, Language]:
        if found.run is None or found.run.version == found.version:
            return found.text, found.language
        written = self._store.version(found.id, found.run.version)
        return written.text, written.language

    def _lines(self, job_id: str, name: str, *, lines: int, offset: int | None, run: int | None) -> LogLines:
        check_range("lines", lines, 1, MAX_LINES)
        chosen = self._run_of(job_id, run)
        if chosen is None:
            return LogLines(lines=(), offset=0)
        path: Path = self._folders.run(job_id, chosen.number) / name
        return read_lines(path, lines=lines, offset=offset, run=chosen.number)

    def _run_of(self, job_id: str, number: int | None) -> RunRecord | None:
        newest = self._store.pipeline_of(job_id).run
        if number is None:
            return newest
        runs = self._store.runs(job_id)
        for run in runs:
            if run.number == number:
                return run
        raise UnknownError(
            f"the job has no run {number}", where="run", allowed=[str(run.number) for run in runs][:MAX_PAGE]
        )

    def _letter_urls(self, found: PipelineRecord) -> list[str]:
        if found.run is None:
            return []
        graph = journals.read_graph(self._folders.run(found.job.id, found.run.number))
        return list(graph.get("dead_letters", ())) if graph is not None else []


def _now_us() -> int:
    return time.time_ns() // 1000
