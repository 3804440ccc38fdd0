"""Whether executors can use what they got, asked from inside tasks, before the first epoch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from packaging.specifiers import SpecifierSet

from arroyo_core.errors import ArroyoError, SetupError
from arroyo_core.spark.missing import explain_missing
from arroyo_core.spark.refusals import cause_of
from arroyo_core.spark.shuffles import Spark, context_of, is_connect
from arroyo_pack.archives import this_minor
from arroyo_pack.packages import Package

#: Where there is no telling how many executors there are.
_TASKS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorFacts:
    """One Python that runs tasks, with the versions of the distributions asked for, None where missing."""

    host: str
    python: str
    executable: str
    packages: dict[str, str | None] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.host} ({self.executable})"


def check_executors(spark: Spark, packed: Sequence[Package], left_out: Sequence[Package], *, asked_by: str) -> None:
    """Raise `SetupError` with all that executors lack: of what was packed, and of what could not be."""
    expected = [*packed, *left_out]
    try:
        found = ask_executors(spark, [package.name for package in expected])
    except ArroyoError:
        raise
    except Exception as error:
        raise _unusable(error, left_out, asked_by) from error
    for executor in found:
        if executor.python.split(".")[:2] != this_minor().split("."):
            raise SetupError(
                f"executors have Python {executor.python} on {executor}, and the driver has {this_minor()}: both must "
                "be of one minor version. Name another one with --conf spark.pyspark.python=PATH or PYSPARK_PYTHON"
            )
        wrong = [told for package in left_out if (told := mismatch(package, executor))]
        if wrong:
            raise SetupError(
                f"{asked_by} brings pure Python packages only, and {executor} lacks {', '.join(wrong)}, which "
                f"{'has' if len(wrong) == 1 else 'have'} compiled code: install that there, or use --ship env"
            )
        strange = [package for package in packed if executor.packages.get(package.name) != package.version]
        if strange:
            raise SetupError(
                f"{executor} does not use what {asked_by} sent: it has "
                f"{', '.join(f'{each.name} {executor.packages.get(each.name)}' for each in strange)} instead of "
                f"{', '.join(map(str, strange))}"
            )


def ask_executors(spark: Spark, names: Sequence[str]) -> list[ExecutorFacts]:
    """The different Pythons that some small tasks run in."""
    wanted = list(names)

    # Nested, so that it is sent as it is: an executor without this package must be able to answer.
    def ask(rows: Iterator[Any]) -> Iterator[str]:
        import json
        import platform
        import socket
        import sys
        from importlib.metadata import PackageNotFoundError, version

        packages: dict[str, str | None] = {}
        for name in wanted:
            try:
                packages[name] = version(name)
            except PackageNotFoundError:
                packages[name] = None
        for _ in rows:
            pass
        facts = {"host": socket.gethostname(), "python": platform.python_version(), "executable": sys.executable}
        yield json.dumps({**facts, "packages": packages}, sort_keys=True)

    told = _ask_session(spark, ask) if is_connect(spark) else _ask_context(context_of(spark), ask)
    return [ExecutorFacts(**json.loads(facts)) for facts in sorted(set(told))]


def _ask_context(context: Any, ask: Any) -> list[str]:
    tasks = max(_TASKS, context.defaultParallelism)
    context.setJobDescription("arroyo: look at executors")
    try:
        answers: list[str] = context.parallelize(range(tasks), tasks).mapPartitions(ask).collect()
    finally:
        # It is this thread's, for all jobs to come.
        context.setLocalProperty("spark.job.description", None)
    return answers


def _ask_session(session: Any, ask: Any) -> list[str]:
    def ask_batches(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        yield pa.RecordBatch.from_pydict({"facts": list(ask(batches))})

    rows = session.range(0, _TASKS, 1, _TASKS).mapInArrow(ask_batches, "facts string").collect()
    return [row["facts"] for row in rows]


def mismatch(package: Package, executor: ExecutorFacts) -> str:
    """What is wrong with a package that was not sent; empty where it will do."""
    there = executor.packages.get(package.name)
    wanted = ",".join(package.specifiers)
    if there is None:
        return f"{package.name}{wanted}"
    return "" if SpecifierSet(wanted).contains(there, prereleases=True) else f"{package.name}{wanted} (it has {there})"


def _unusable(error: Exception, left_out: Sequence[Package], asked_by: str) -> ArroyoError:
    missing = explain_missing(str(error))
    if missing is None:
        return SetupError(f"{asked_by}: executors cannot be asked what they have: {cause_of(str(error))}")
    is_left_out = any(f"no {package.name} " in str(missing) for package in left_out)
    hint = f". {asked_by} cannot bring it, since it has compiled code: --ship env can" if is_left_out else ""
    return SetupError(f"{missing}{hint}")
