"""A session of the prompt: statements that create something are kept, queries run over them."""

from __future__ import annotations

import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType

import pyarrow as pa

from arroyo_core.api.updating import UPDATING_META
from arroyo_core.cli.diagnostics import give_text
from arroyo_core.errors import InvalidPipelineError, Location, PipelineError
from arroyo_core.pipeline.document import Entry, YamlMap
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.parameters import read_parameters
from arroyo_core.pipeline.plan import Plan
from arroyo_core.pipeline.planner import plan_document
from arroyo_core.pipeline.substitution import References
from arroyo_core.pipeline.written import WrittenPipeline
from arroyo_core.plugin import PluginSet
from arroyo_core.runtime.lives import JobLives
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.start import StartOptions
from arroyo_core.runtime.stop import StopSignal
from arroyo_core.runtime.user_code import BundleOpener
from arroyo_sql.bundles import bundles_of
from arroyo_sql.connectors import is_lookup, is_memory, is_sink, lookup_of, sink_of, source_of
from arroyo_sql.language import Sql
from arroyo_sql.lexer import SourceText, tokenize
from arroyo_sql.places import mapping, scalar
from arroyo_sql.prompt.collecting import Rows, collecting
from arroyo_sql.prompt.endings import apply_ending, split_ending
from arroyo_sql.script import Bundle, Insert, Script, Setting, Statement, Table, Text, View
from arroyo_sql.settings import read_settings
from arroyo_sql.statements import Reading, read_script

#: More rows than this are counted only: nobody reads them at a prompt.
MAX_ROWS = 1_000_000
#: How long an epoch lasts: after so long a query can be stopped.
_EPOCH = "500ms"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a statement came to: rows of a query, or a word for what was done."""

    done: str
    rows: Rows | None = None
    is_stopped: bool = False


@dataclass(slots=True)
class Session:
    """What was created so far. Mistakes are raised as `InvalidPipelineError`, with places in the inputs."""

    plugins: PluginSet
    environment: Mapping[str, str]
    tables: dict[str, Table] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    settings: dict[str, Setting] = field(default_factory=dict)
    bundles: list[Bundle] = field(default_factory=list)
    #: What memory tables hold.
    inserts: list[Insert] = field(default_factory=list)
    _schemas: dict[str, pa.Schema] = field(default_factory=dict)
    _inputs: int = 0
    #: Kept, so that bundles are opened once.
    _bundles: BundleOpener = field(default_factory=BundleOpener)

    @property
    def names(self) -> list[str]:
        return [*self.tables, *self.views]

    def execute(self, text: str) -> Iterator[Answer]:
        """Run the statements of an input, and give what each came to."""
        self._inputs += 1
        file = f"input {self._inputs}"
        give_text(file, text)
        mistakes = Mistakes()
        references = self._references(mistakes)
        reading = read_script(text, file=file, references=references, mistakes=mistakes)
        mistakes.raise_if_any()
        for statement in reading.script.statements:
            yield self._statement(statement, reading, references)

    def schema_of(self, name: str) -> pa.Schema:
        """The columns of a table or view, as a query sees them; of a sink those that are declared."""
        found = self._schemas.get(name)
        if found is not None:
            return found
        table = self.tables.get(name)
        if table is not None and not self._is_readable(table):
            return pa.schema([(column.name, column.type) for column in table.columns])
        at = table.at if table is not None else self.views[name].at
        rows = Rows(0)
        self._planned(_all_of(name, at), Reading(Script(at.file, ()), str), self._references(Mistakes()), rows)
        schema = rows.schema or pa.schema([])
        self._schemas[name] = pa.schema([each for each in schema if each.name != UPDATING_META])
        return self._schemas[name]

    def _is_readable(self, table: Table) -> bool:
        """Whether a query may read all rows of a table."""
        if is_memory(table):
            return table.query is not None or any(insert.target == table.name for insert in self.inserts)
        return not is_lookup(table) and not (table.options.get("type") and is_sink(table, self.plugins))

    def known_schema_of(self, name: str) -> pa.Schema | None:
        """The same where it is known without planning anything."""
        return self._schemas.get(name)

    def _statement(self, statement: Statement, reading: Reading, references: References) -> Answer:
        match statement:
            case Table():
                return self._create(statement, reading, references)
            case View():
                self._check_view(statement, reading, references)
                return Answer("CREATE VIEW")
            case Setting():
                mistakes = Mistakes()
                read_settings([statement], mistakes)
                mistakes.raise_if_any()
                self.settings[statement.name] = statement
                self._schemas.clear()
                return Answer("SET")
            case Bundle():
                self._check_bundle(statement, references)
                self.bundles.append(statement)
                return Answer("CREATE FUNCTION")
            case Insert():
                return self._insert(statement, reading, references)

    def _check_bundle(self, statement: Bundle, references: References) -> None:
        mistakes = Mistakes()
        script = Script(statement.at.file, (*self.bundles, statement))
        found = bundles_of(script, read_settings((), mistakes))
        found.load(self.plugins, self._bundles, references.environment, mistakes)
        mistakes.raise_if_any()

    def _create(self, table: Table, reading: Reading, references: References) -> Answer:
        if table.options:
            mistakes = Mistakes()
            declared = replace(table, query=None)
            if is_lookup(table):
                lookup_of(declared, plugins=self.plugins, mistakes=mistakes)
            elif is_sink(table, self.plugins) and ("type" in table.options or table.query is not None):
                sink_of(declared, plugins=self.plugins, mistakes=mistakes)
            else:
                source_of(declared, plugins=self.plugins, mistakes=mistakes)
            mistakes.raise_if_any()
        kept = replace(table, query=None) if table.options else table
        if table.query is not None and not table.options:
            self._check(Insert(None, table.at, table.query), reading, references)
        self.views.pop(table.name, None)
        self.tables[table.name] = kept
        self.inserts = [insert for insert in self.inserts if insert.target != table.name]
        self._schemas.clear()
        if table.query is None or not table.options:
            return Answer("CREATE TABLE")
        return self._insert(Insert(table.name, table.at, table.query), reading, references)

    def _check_view(self, view: View, reading: Reading, references: References) -> None:
        self._check(Insert(None, view.at, view.query), reading, references)
        self.tables.pop(view.name, None)
        self.views[view.name] = view
        self._schemas.clear()

    def _check(self, statement: Statement, reading: Reading, references: References) -> None:
        """Raises what is wrong with the query of a statement."""
        self._planned(statement, reading, references, Rows(0))

    def _insert(self, insert: Insert, reading: Reading, references: References) -> Answer:
        target = self.tables.get(insert.target) if insert.target is not None else None
        if target is not None and is_memory(target):
            self.inserts.append(insert)
            try:
                self._check(_all_of(target.name, insert.at), reading, references)
            except BaseException:
                # Every query that reads the table would have this mistake.
                self.inserts.pop()
                raise
            self._schemas.clear()
            return Answer("INSERT")
        if insert.target is None:
            return self._select(insert, reading, references)
        plan, plugins = self._planned(insert, reading, references, Rows(0))
        return Answer("INSERT", is_stopped=run_here(plan, plugins, StopSignal()))

    def _select(self, insert: Insert, reading: Reading, references: References) -> Answer:
        rows = Rows(MAX_ROWS)
        if is_constant(insert.query):
            compute(insert.query, rows)
            return Answer("SELECT", rows)
        query, ending = split_ending(insert.query)
        plan, plugins = self._planned(replace(insert, query=query), reading, references, rows)
        stop = StopSignal()
        if ending is None:
            return Answer("SELECT", rows, run_here(plan, plugins, stop))
        if ending.enough is not None and not rows.is_updating:
            rows.stop_after(min(ending.enough, MAX_ROWS), stop.request)
        is_stopped = run_here(plan, plugins, stop) and not rows.is_enough
        return Answer("SELECT", apply_ending(ending, rows, MAX_ROWS), is_stopped)

    def _planned(
        self, statement: Statement, reading: Reading, references: References, rows: Rows
    ) -> tuple[Plan, PluginSet]:
        plugins = replace(self.plugins, registry=collecting(self.plugins.registry, rows))
        script = Script(reading.script.file, (*self._kept(statement), statement))

        def read(environment: Environment, mistakes: Mistakes) -> WrittenPipeline | None:
            language = Sql(plugins, self._bundles)
            known = References(environment, references.parameters)
            compiled = language.compile_reading(Reading(script, reading.conceal), references=known, mistakes=mistakes)
            root = _without_checkpoints(compiled.root)
            return WrittenPipeline(root=root, texts={}, parameters={}, unused_parameters=())

        planned = plan_document(read, plugins=plugins, environment=self.environment, bundles=self._bundles)
        return planned.plan, plugins

    def _kept(self, statement: Statement) -> Iterator[Statement]:
        """The statements so far, of views and of rows in memory those that this one reads.

        What was right when it was said may be wrong since then, where a table was created again; that harms what reads
        it, and nothing else.
        """
        queries: dict[str, list[Text]] = {}
        for view in self.views.values():
            queries.setdefault(view.name, []).append(view.query)
        for insert in self.inserts:
            queries.setdefault(str(insert.target), []).append(insert.query)
        for table in self.tables.values():
            queries.setdefault(table.name, []).extend([table.query] if table.query is not None else [])
        read: set[str] = set()
        found = [getattr(statement, "query", None)]
        while found:
            text = found.pop()
            for name in _names(text) & queries.keys() - read:
                read.add(name)
                found += queries[name]
        yield from self.settings.values()
        yield from self.bundles
        yield from (table for table in self.tables.values() if table.query is None or table.name in read)
        yield from (view for view in self.views.values() if view.name in read)
        yield from (insert for insert in self.inserts if insert.target in read)

    def _references(self, mistakes: Mistakes) -> References:
        """What `${NAME}` means: parameters that were set, and the environment."""
        settings = read_settings(tuple(self.settings.values()), mistakes)
        declared = settings.declared()
        parameters = read_parameters(declared.value if declared is not None else None, {}, mistakes)
        values = {name: parameter.value for name, parameter in parameters.items()}
        return References(Environment(self.environment), values)


def _all_of(name: str, at: Location) -> Insert:
    """The query for all rows of a table or view."""
    quoted = name.replace('"', '""')
    return Insert(None, at, Text(f'SELECT * FROM "{quoted}"', at))


def _names(query: Text | None) -> set[str]:
    """All names that a query has, of tables and of other things."""
    tokens = tokenize(SourceText("", query.sql), Mistakes()) if query is not None else []
    return {token.value for token in tokens if token.is_name}


def is_constant(query: Text) -> bool:
    """Whether a query reads no table: `SELECT 1 + 1`."""
    tokens = tokenize(SourceText("", query.sql), Mistakes())
    return not any(token.is_word("FROM") for token in tokens)


def compute(query: Text, rows: Rows) -> None:
    """The rows of a query that reads no table; no pipeline is needed for them."""
    from datafusion import SessionContext

    try:
        table = SessionContext().sql(query.sql).to_arrow_table()
    except Exception as error:
        message = str(error).removeprefix("DataFusion error: ").split("\n")[0]
        raise InvalidPipelineError([PipelineError(message, at=query.at)]) from error
    rows.schema = table.schema
    for batch in table.to_batches():
        rows.add(batch)


def run_here(plan: Plan, plugins: PluginSet, stop: StopSignal) -> bool:
    """Run a plan to its end in this process; whether it was stopped. A second Ctrl-C ends it at once."""
    folder = Path(tempfile.mkdtemp(prefix="arroyo-sql-"))
    executor = LocalExecutor(plugins, lives_on=True)
    try:
        with _stopping(stop):
            lives = JobLives(executor=executor, plugins=plugins, storage_url=folder.as_uri(), stop=stop, max_restarts=0)
            lives.run(plan, StartOptions())
    finally:
        executor.close()
        shutil.rmtree(folder, ignore_errors=True)
    return stop.is_requested


@contextmanager
def _stopping(stop: StopSignal) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_requested:
            raise KeyboardInterrupt
        stop.request()

    previous = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _without_checkpoints(root: YamlMap) -> YamlMap:
    """A query at the prompt starts over each time, and leaves nothing behind."""
    interval = Entry(key="interval", key_at=root.at, value=scalar(root.at, _EPOCH))
    own = Entry(key="checkpoint", key_at=root.at, value=mapping(root.at, [interval]))
    return mapping(root.at, [*(entry for entry in root.entries if entry.key != "checkpoint"), own])
