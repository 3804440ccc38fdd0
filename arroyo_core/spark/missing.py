"""Executors that lack what the driver has: which package, on which host, and what to do, out of Spark's error."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, entry_points, packages_distributions, version

from arroyo_core.errors import ArroyoError, Domain
from arroyo_core.plugin.hookspec import PROJECT

GUIDE = "docs/on-a-cluster.md"

#: The last attempt of the task that made the job fail.
_HOST = re.compile(r"Lost task \S+ in stage \S+ \(TID \d+\) \((?P<host>\S+) executor \S+\)")
#: At the end of a traceback, or instead of one: from the Python that was to run the daemon.
_MODULE = re.compile(
    r"(?:(?:(?P<python>\S+): Error while finding module specification for \S+ \()?ModuleNotFoundError"
    r"|(?P<program>\S+)): No module named '?(?P<module>[\w.]+)'?"
)
_NO_PYTHON = re.compile(r'Cannot run program "(?P<python>[^"]+)"')
#: An environment that was sent to executors says itself why it does not start.
_ENVIRONMENT = re.compile(r"^\s*arroyo-environment: (?P<said>\S.*?)\s*$", re.MULTILINE)
#: Spark 3.5 writes `(3, 12)`, and no colons.
_OTHER_PYTHON = re.compile(
    r"PYTHON_VERSION_MISMATCH\] Python in worker has different version:? (?P<worker>[\d.]+|\([\d, ]+\)) "
    r"than that in driver:? (?P<driver>[\d.]+)"
)
_TRACEBACK = re.compile(
    r"Traceback \(most recent call last\):.*?(?=\n\s+at [\w.$]+\(|\n SQLSTATE|\nPYTHONPATH was|\Z)", re.DOTALL
)


class MissingPackageError(ArroyoError):
    """A Python that runs tasks is not there, or lacks a package that the driver has, or is of another version."""

    domain = Domain.USER


def explain_missing(text: str) -> MissingPackageError | None:
    """What the text of Spark's error says about the Python of its workers; None where it says something else."""
    found = _HOST.search(text)
    host = f" on {found['host']}" if found else ""
    message = (
        _without_start(text, host)
        or _without_python(text, host)
        or _of_other_version(text, host)
        or _without_module(text, host)
    )
    return MissingPackageError(f"{message}; see {GUIDE}") if message else None


def _without_start(text: str, host: str) -> str | None:
    found = _ENVIRONMENT.search(text)
    return f"executors cannot start Python{host}: {found['said']}" if found is not None else None


def _without_python(text: str, host: str) -> str | None:
    found = _NO_PYTHON.search(text)
    if found is None or "python" not in found["python"].rpartition("/")[2]:
        return None
    return (
        f"executors cannot start Python{host}: there is no {found['python']}. Name theirs with "
        "--conf spark.pyspark.python=PATH or PYSPARK_PYTHON"
    )


def _of_other_version(text: str, host: str) -> str | None:
    found = _OTHER_PYTHON.search(text)
    if found is None:
        return None
    worker = found["worker"].strip("()").replace(", ", ".")
    return (
        f"executors have Python {worker}{host}, and the driver has {found['driver']}: both must be of one "
        "minor version. Name another one with --conf spark.pyspark.python=PATH or PYSPARK_PYTHON"
    )


def _without_module(text: str, host: str) -> str | None:
    traceback = _TRACEBACK.search(text)
    # Of a traceback the last line counts: a module may be missed, and done without, on the way.
    said = traceback[0].rstrip().splitlines()[-1] if traceback else text
    found = _MODULE.search(said)
    if found is None:
        return None
    program = found["python"] or found["program"]
    python = f" ({program})" if program else ""
    return (
        f"executors have no {_distribution(found['module'])}{host}{python}: install the driver's packages there, or "
        "name a Python that has them with --conf spark.pyspark.python=PATH or PYSPARK_PYTHON"
    )


def _distribution(module: str) -> str:
    """What to install for a module, in the driver's version; the module itself where the driver has none either."""
    root = module.partition(".")[0]
    plugins = {point.module.partition(".")[0]: point.dist.name for point in entry_points(group=PROJECT) if point.dist}
    name = {"arroyo_core": "arroyo-core", **plugins}.get(root)
    if name is None:
        name = next(iter(packages_distributions().get(root, ())), None)
    if name is None:
        return f"module {module!r}"
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return name
