"""Runs engines over topics, and checks their answers with DuckDB."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..modules import ENVIRONMENT, ROOT, module_command
from ..nexmark.answers import Answers, WrongAnswerError, open_dataset
from ..nexmark.dataset import Dataset
from ..nexmark.environments import NotInstalledError, python_of
from ..nexmark.machine import about
from ..nexmark.processes import BenchError, run_tree
from ..nexmark.queries import QUERIES
from ..nexmark.results import Result, Results, Run
from ..nexmark.running import rotated
from . import topics
from .cases import FORMATS, PINS, Case, Engine
from .tasks import TopicTask, TopicTiming

BUILD = ROOT / "build" / "bench_kafka"
#: No run may take longer.
TIMEOUT_S = 600.0


@dataclass(slots=True, kw_only=True)
class Measurer:
    """Measures over one dataset, in the topics of one broker."""

    servers: str
    dataset: Dataset
    #: Where processes work.
    build: Path = BUILD
    #: By format: the bytes of all messages.
    sizes: dict[str, int] = field(default_factory=dict)
    _pythons: dict[str, Path | str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return self.dataset.rows("bid")

    def fill(self, formats: Sequence[str] = FORMATS) -> None:
        """Put the bids into a topic for each format."""
        for format in formats:
            topics.create(self.servers, topic_of(format))
            encode = topics.encoder(format)
            self.sizes[format] = topics.produce(
                self.servers, topic_of(format), (encode(row) for row in topics.bids(self.dataset))
            )

    def measure_all(self, cases: Sequence[Case], engines: Sequence[Engine], *, runs: int) -> Results:
        """Case by case, so that what is compared ran at about the same time; another is first in each round."""
        asked = [(case, engine) for case in cases for engine in engines if engine.is_asked(case)]
        found = {
            (case.name, engine.name): Result(
                engine=engine.name, query=case.name, events=self.dataset.events, rows=self.rows
            )
            for case, engine in asked
        }
        for number in range(runs):
            for case in cases:
                for engine in rotated([engine for engine in engines if engine.is_asked(case)], number):
                    key = case.name, engine.name
                    if not (found[key].wrong or found[key].missing):
                        found[key] = self._measure(case, engine, found[key])
                        print(_line(number + 1, found[key]), flush=True)
        return Results(found.values())

    def _measure(self, case: Case, engine: Engine, result: Result) -> Result:
        """One run more; one that fails is a result, too."""
        try:
            python = self.python(engine)
        except NotInstalledError as error:
            return replace(result, missing=str(error))
        run, versions = self.run_once(case, engine, python)
        return replace(result, runs=(*result.runs, run), about={**about(), "versions": versions})

    def python(self, engine: Engine) -> Path:
        """Its interpreter. Asked once for each environment: an installation that fails may take minutes to do so."""
        name = engine.environment
        if name is None:
            return Path(sys.executable)
        if name not in self._pythons:
            try:
                self._pythons[name] = python_of(name, PINS)
            except NotInstalledError as error:
                self._pythons[name] = str(error)
        python = self._pythons[name]
        if isinstance(python, str):
            raise NotInstalledError(python)
        return python

    def run_once(self, case: Case, engine: Engine, python: Path) -> tuple[Run, dict[str, str]]:
        """A run, and the versions that the engine tells; a wrong answer is told and not timed."""
        self.build.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="run-", dir=self.build) as name:
            folder = Path(name)
            task = self.task(case, engine, folder)
            command = module_command(engine.module, folder / "task.json", folder / "timing.json", python=python)
            try:
                usage = run_tree(command, folder=folder, environment=ENVIRONMENT, timeout_s=TIMEOUT_S)
                timing = TopicTiming.read(folder / "timing.json")
                self.check(case, task, timing, folder / "answer")
            except BenchError as error:
                return Run(wrong=f"failed: {error}"), {}
            except WrongAnswerError as error:
                return Run(wrong=f"wrong: {error}"), {}
            finally:
                if task.answer:
                    topics.delete(self.servers, task.answer)
        run = Run(job_s=timing.job_s, process_s=usage.process_s, cpu_s=usage.cpu_s, epochs=timing.epochs)
        return run, timing.versions

    def task(self, case: Case, engine: Engine, folder: Path) -> TopicTask:
        """Written to `folder`; the topic for its answer is made."""
        (folder / "scratch").mkdir()
        answer = f"answer-{case.name}-{engine.name}-{folder.name}" if case.is_written else ""
        if answer:
            topics.create(self.servers, answer)
        task = TopicTask(
            case=case.query,
            data=topic_of(case.format),
            answer=answer,
            scratch=str(folder / "scratch"),
            format=case.format,
            cores=engine.cores,
            servers=self.servers,
        )
        task.write(folder / "task.json")
        return task

    def check(self, case: Case, task: TopicTask, timing: TopicTiming, answer: Path) -> None:
        """Of a topic each row; of rows that were forgotten how many they were, and the sum of prices if it is known."""
        if task.answer:
            answer.mkdir()
            topics.write_lines(self.servers, task.answer, answer / "lines.json")
            Answers(self.dataset).check(QUERIES[case.query], answer, replace(timing, answer="json"))
            return
        if timing.rows != self.rows:
            raise WrongAnswerError(f"{timing.rows:,} rows, not {self.rows:,}")
        if timing.price_sum not in (None, self._price_sum()):
            raise WrongAnswerError(f"the sum of prices is {timing.price_sum:,}, not {self._price_sum():,}")

    def _price_sum(self) -> int:
        with open_dataset(self.dataset) as connection:
            return int(connection.execute("SELECT sum(price) FROM bid").fetchall()[0][0])


def topic_of(format: str) -> str:
    return f"bids-{format}"


def _line(number: int, result: Result) -> str:
    name = f"run {number}  {result.query:15} {result.engine:21}"
    if result.missing or result.wrong:
        return f"{name} {result.missing or result.wrong}"
    run = result.runs[-1]
    return (
        f"{name} {run.job_s:7.2f} s job  {run.process_s:7.2f} s process  {run.cpu_s:7.2f} s cpu  "
        f"{result.rows / run.job_s:12,.0f} messages/s"
    )
