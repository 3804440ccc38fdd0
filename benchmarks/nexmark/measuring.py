"""Runs engines on queries, in turn; results are kept after each run, so that a stopped benchmark can go on."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..modules import ENVIRONMENT, module_command
from .answers import Answers, WrongAnswerError
from .dataset import Dataset, prepare
from .engines import Engine
from .environments import BUILD, NotInstalledError, python_of
from .machine import about
from .processes import BenchError, run_tree
from .queries import Query
from .results import Result, Run, load_one, save
from .running import rotated
from .tasks import PARALLELISM, Task, Timing

RESULTS = BUILD / "results"
#: No run may take longer.
TIMEOUT_S = 900.0


@dataclass(slots=True, kw_only=True)
class Measurer:
    """Measures with one size of the data; engines may have limits of their own."""

    events: int
    runs: int
    #: By engine: the most events that it is given.
    limits: Mapping[str, int] = field(default_factory=dict)
    results: Path = RESULTS
    #: Whether what was measured before, on as many events and as often, is left as it is.
    is_missing_only: bool = False
    #: Whether each engine runs once more on each query, before its other runs, to see how much memory it takes.
    looks_at_memory: bool = True
    _answers: dict[tuple[int, str], tuple[Dataset, Answers]] = field(default_factory=dict)
    _missing: dict[str, str] = field(default_factory=dict)

    def measure_all(self, engines: Sequence[Engine], queries: Sequence[Query]) -> None:
        """Query by query, so that what is compared ran at about the same time; another is first in each round."""
        for query in queries:
            asked = [engine for engine in engines if query.name in engine.queries and self._is_wanted(engine, query)]
            found = {engine.name: self._empty(engine, query) for engine in asked}
            for number in range(0 if self.looks_at_memory else 1, self.runs + 1):
                for engine in rotated(asked, number):
                    result = found[engine.name]
                    if result.wrong or result.missing:
                        continue
                    found[engine.name] = self._measure(engine, query, result, looks_at_memory=number == 0)
                    save(self.results, found[engine.name])
                    print(_line(number, found[engine.name]), flush=True)

    def _is_wanted(self, engine: Engine, query: Query) -> bool:
        if not self.is_missing_only:
            return True
        known = load_one(self.results, engine.name, query.name)
        if known is None or known.events != self.events_of(engine) or len(known.runs) < self.runs:
            return True
        return self.looks_at_memory and known.watched is None

    def events_of(self, engine: Engine) -> int:
        limit = self.limits.get(engine.name, engine.max_events)
        return self.events if limit is None else min(self.events, limit)

    def _empty(self, engine: Engine, query: Query) -> Result:
        return Result(engine=engine.name, query=query.name, events=self.events_of(engine))

    def _measure(self, engine: Engine, query: Query, result: Result, *, looks_at_memory: bool) -> Result:
        """One run more; one that fails is a result, too."""
        try:
            python = self._python(engine)
        except NotInstalledError as error:
            return Result(engine=engine.name, query=query.name, events=result.events, missing=str(error))
        dataset, answers = self._dataset(result.events, engine.format)
        run, versions = self.run_once(engine, query, python, dataset, answers, looks_at_memory=looks_at_memory)
        return replace(
            result,
            rows=dataset.rows(*query.tables),
            watched=run if looks_at_memory else result.watched,
            runs=result.runs if looks_at_memory else (*result.runs, run),
            about={**about(), "versions": versions, "input_bytes": dataset.size_bytes()},
        )

    def _python(self, engine: Engine) -> Path:
        """Asked once for each environment: an installation that fails may take minutes to do so."""
        if engine.environment in self._missing:
            raise NotInstalledError(self._missing[engine.environment])
        try:
            return python_of(engine.environment)
        except NotInstalledError as error:
            self._missing[engine.environment] = str(error)
            raise

    def _dataset(self, events: int, format: str) -> tuple[Dataset, Answers]:
        key = events, format
        if key not in self._answers:
            dataset = prepare(BUILD / "data", events, format=format)
            self._answers[key] = dataset, Answers(dataset)
        return self._answers[key]

    def run_once(
        self,
        engine: Engine,
        query: Query,
        python: Path,
        dataset: Dataset,
        answers: Answers,
        *,
        looks_at_memory: bool,
    ) -> tuple[Run, dict[str, str]]:
        """A run, and the versions that the engine tells; a wrong answer is told and not timed."""
        # Of its own: two benchmarks may run at once, if only to see whether they work.
        with tempfile.TemporaryDirectory(prefix="run-", dir=BUILD) as name:
            folder = Path(name)
            (folder / "scratch").mkdir()
            task = Task(
                case=query.name,
                data=str(dataset.folder),
                answer=str(folder / "answer"),
                scratch=str(folder / "scratch"),
                format=dataset.format,
                cores=PARALLELISM,
            )
            task.write(folder / "task.json")
            command = module_command(engine.module, folder / "task.json", folder / "timing.json", python=python)
            try:
                usage = run_tree(
                    command,
                    folder=folder,
                    environment=ENVIRONMENT,
                    timeout_s=TIMEOUT_S,
                    looks_at_memory=looks_at_memory,
                )
            except BenchError as error:
                return Run(wrong=f"failed: {error}"), {}
            timing = Timing.read(folder / "timing.json")
            try:
                answers.check(query, folder / "answer", timing)
            except WrongAnswerError as error:
                return Run(wrong=f"wrong: {error}"), timing.versions
        run = Run(
            job_s=timing.job_s,
            process_s=usage.process_s,
            cpu_s=usage.cpu_s,
            peak_bytes=usage.peak_bytes,
            epochs=timing.epochs,
        )
        return run, timing.versions


def _line(number: int, result: Result) -> str:
    name = f"{f'run {number}' if number else 'memory'}  {result.query:5} {result.engine:21}"
    if result.missing:
        return f"{name} not installed: {result.missing.splitlines()[-1]}"
    if result.wrong:
        return f"{name} {result.wrong}"
    if number == 0:
        return f"{name} {result.peak_bytes / 2**20:7,.0f} MiB"
    run = result.runs[-1]
    return (
        f"{name} {run.job_s:7.2f} s job  {run.process_s:7.2f} s process  {run.cpu_s:7.2f} s cpu  "
        f"{result.rows / run.job_s:12,.0f} events/s"
    )
