"""What executors get with a Spark, beside what their machines have: packages to import, or a whole environment.

Spark sends files to executors in three ways, by what it is. A context that we start unpacks archives in the folder of
each executor, before the first task starts Python there. A context that runs already takes zips to import from, and a
server of Spark Connect takes either, for one session.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from arroyo_core.errors import SetupError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

#: Where executors have it, below the folder that they run in.
PACKAGES_FOLDER = "arroyo_packages"
ENVIRONMENT_FOLDER = "arroyo_environment"
ENVIRONMENT_PYTHON = f"./{ENVIRONMENT_FOLDER}/bin/python"

ARCHIVES = "spark.archives"
WORKER_PYTHON = "spark.pyspark.python"
WORKER_PATH = "spark.executorEnv.PYTHONPATH"
#: Of a session, for functions over DataFrames.
SESSION_PYTHON = "spark.sql.execution.pyspark.python"

#: A context, or a session of Spark Connect.
Started: TypeAlias = "SparkContext | SparkSession"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provision:
    """Either packages or an environment, in a file of this machine."""

    #: Who asked for it, as messages call it, such as `--ship env`.
    asked_by: str
    #: A zip whose names are those of a `site-packages`.
    packages: Path | None = None
    #: An archive (`.tar.gz`, `.zip`) with `bin/python`.
    environment: Path | None = None
    #: Called with the Spark when it runs; raises an `ArroyoError` where executors cannot use what they got.
    check: Callable[[Started], None] | None = None

    def __post_init__(self) -> None:
        if (self.packages is None) == (self.environment is None):
            raise ValueError("a provision is either packages or an environment")


class Provider(ABC):
    """Makes a provision, which may take a while, once it is known that it is needed."""

    #: As of `Provision`.
    asked_by: str

    @abstractmethod
    def prepare(self, tell: Callable[[str], None]) -> Provision:
        """Called once, before Spark is started; `tell` takes a line for people. What it raises ends the command."""


def provided_settings(provision: Provision, conf: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The settings of a context on a cluster whose executors get it; pure.

    `conf` is what the caller asks for, `given` what was set outside; of these the archives and paths stay.
    Raises `SetupError` where the caller asks for another Python than that of the environment.
    """
    before = {**given, **conf}
    if provision.environment is not None:
        chosen = conf.get(WORKER_PYTHON)
        if chosen is not None and chosen != ENVIRONMENT_PYTHON:
            raise SetupError(
                f"{provision.asked_by} brings a Python, and --conf {WORKER_PYTHON}={chosen} names another one: leave "
                "one of them out"
            )
        added = {WORKER_PYTHON: ENVIRONMENT_PYTHON}
        archive = f"{provision.environment.resolve().as_uri()}#{ENVIRONMENT_FOLDER}"
    else:
        assert provision.packages is not None
        # In front of what executors have.
        added = {WORKER_PATH: ":".join(filter(None, [f"./{PACKAGES_FOLDER}", before.get(WORKER_PATH)]))}
        archive = f"{provision.packages.resolve().as_uri()}#{PACKAGES_FOLDER}"
    return added | {ARCHIVES: ",".join(filter(None, [before.get(ARCHIVES), archive]))}


def provide(provision: Provision, spark: Any, *, is_connect: bool) -> None:
    """Give it to a Spark that runs: a context, a session, or one of Spark Connect.

    Raises `SetupError` for an environment where there is a context: its workers have their Python already.
    """
    if not is_connect:
        if provision.packages is None:
            raise SetupError(
                f"{provision.asked_by} needs a Spark that it starts, and this process has one already, whose Python "
                "cannot be changed: ship wheels instead, or stop that Spark"
            )
        getattr(spark, "sparkContext", spark).addPyFile(str(provision.packages))
    elif provision.packages is not None:
        spark.addArtifacts(str(provision.packages), pyfile=True)
    else:
        spark.addArtifacts(f"{provision.environment}#{ENVIRONMENT_FOLDER}", archive=True)
        spark.conf.set(SESSION_PYTHON, ENVIRONMENT_PYTHON)


def check_provided(provision: Provision | None, spark: Started) -> None:
    """Raise an `ArroyoError` where executors cannot use what they got."""
    if provision is not None and provision.check is not None:
        provision.check(spark)
