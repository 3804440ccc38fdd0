"""Whether Spark starts, and whether its workers have what the driver has."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import version

from arroyo_core.errors import SetupError
from arroyo_core.plugin import installed_plugins
from arroyo_devtools.doctor.findings import Finding, failed, ok


def check_spark(master: str | None, conf: Mapping[str, str], *, is_quiet: bool) -> Iterator[Finding]:
    """Start a session, run a few small tasks, and stop it."""
    # Only this check waits for pyspark.
    from arroyo_core.spark.missing import explain_missing
    from arroyo_core.spark.session import create_session, stop_spark
    from arroyo_core.spark.target import resolve_target
    from arroyo_devtools.doctor.workers import WorkerFacts, probe_workers

    expected = {"arroyo-core": version("arroyo-core"), "pyarrow": version("pyarrow")}
    expected |= {report.origin.distribution: report.origin.version for report in installed_plugins().reports}
    started = time.monotonic()
    try:
        target = resolve_target(master, conf)
        session = create_session("doctor", master=master, conf=conf, is_quiet=is_quiet)
    except SetupError as error:
        yield failed("spark", str(error), "fix what is said, or try without --master and --conf")
        return
    try:
        yield ok("spark", f"Spark {session.version} starts in {time.monotonic() - started:.1f} s ({target})")
        started = time.monotonic()
        workers: list[WorkerFacts] = probe_workers(session, sorted(expected))
        yield ok("spark: tasks", f"a first job takes {time.monotonic() - started:.1f} s")
        for worker in workers:
            yield _worker_finding(worker.host, worker.python, worker.executable, worker.packages, expected)
    except Exception as error:
        lines = str(error).strip().splitlines()
        reason = explain_missing(str(error)) or (lines[0] if lines else type(error).__name__)
        yield failed(
            "spark: tasks",
            f"a small job fails: {reason}",
            "see the logs of the executors; their Python needs arroyo-core, its plugins, pyarrow and pandas",
        )
    finally:
        stop_spark(session)


def _worker_finding(
    host: str, python: str, executable: str, packages: Mapping[str, str | None], expected: Mapping[str, str]
) -> Finding:
    here = platform.python_version()
    where = f"Python {python} at {executable} on {host}"
    if python.split(".")[:2] != here.split(".")[:2]:
        return failed(
            "python of workers", f"{where}: the driver has {here}", "set PYSPARK_PYTHON to the same Python everywhere"
        )
    wrong = [
        f"{name} {packages.get(name) or 'is missing'} (driver: {wanted})"
        for name, wanted in sorted(expected.items())
        if packages.get(name) != wanted
    ]
    if wrong:
        return failed(
            "packages of workers",
            f"{where}: {', '.join(wrong)}",
            "install the same versions on the driver and on every executor",
        )
    return ok("python of workers", f"{where}, with the same packages")
