"""Starts Spark, where the user passes none."""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from arroyo_core.errors import SetupError
from arroyo_core.spark.class_archive import archive_options
from arroyo_core.spark.daemon import MODULE, daemon_environment
from arroyo_core.spark.exchanges import KRYO, Spark, context_of, is_connect, run_empty_job, session_of
from arroyo_core.spark.java import check_java
from arroyo_core.spark.ready_daemon import ReadyDaemon

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

#: Spark's own retries of a failed task, also on one machine.
LOCAL_MASTER = "local[*,4]"

#: Frames are about 1 MB: few of them make a batch. Rows may be larger than that, and then fewer do.
FRAMES_PER_BATCH = 16
_BATCHES = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(FRAMES_PER_BATCH),
    "spark.sql.execution.arrow.maxBytesPerBatch": str(FRAMES_PER_BATCH << 20),
}

#: With more tasks than these in one JVM, collecting garbage in a single thread would hold them up.
SERIAL_THREADS = 4

#: Serial collection, unless somebody has chosen another one, and a heap that starts small, and grows where it must.
#: What the JVM keeps is small; frames only pass through it, and would fill whatever heap there is.
_SMALL_HEAP = ("-XX:+NeverActAsServerClassMachine", "-Xms48m")

CONNECT_PORT = 15002
MASTER_PORT = 7077

logger = logging.getLogger(__name__)

_SETTINGS = {
    **_BATCHES,
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.serializer": KRYO,
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def start_spark(
    name: str,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    is_quiet: bool = True,
    workers: int | None = None,
) -> Spark:
    """Start or reach Spark: `local[...]`, a cluster's URL, or Spark Connect's `sc://host:port`.

    A session only where it is one of Spark Connect: epochs need no more than a context, and a session takes time and
    memory. On this machine there are Python workers when it returns, one for each core or as many as are asked for.
    Raises `SetupError` in plain words where Java or the master is missing.
    """
    master = master or LOCAL_MASTER
    if master.startswith("sc://"):
        return _connect(name, master, conf or {})
    if master.startswith("spark://"):
        _check_cluster(master)
    java = check_java()
    # Workers must be this very interpreter: it has the plugins.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark import SparkConf, SparkContext

    settings = _settings(name, master, java, is_quiet=is_quiet) | dict(conf or {})
    daemon = ReadyDaemon() if _has_own_workers(master, conf or {}) else None
    if daemon is not None:
        settings |= _for_workers(daemon.environment)
    try:
        context = SparkContext.getOrCreate(SparkConf().setAll(list(settings.items())))
        if daemon is not None:
            _start_workers(context, workers)
        return context
    except Exception as error:
        if daemon is not None:
            daemon.stop()
        raise SetupError(f"Spark could not be started on {master}: {_first_line(error)}") from error


def create_session(
    name: str, *, master: str | None = None, conf: Mapping[str, str] | None = None, is_quiet: bool = True
) -> SparkSession:
    """As `start_spark`, with a session for whoever needs more than epochs."""
    spark = start_spark(name, master=master, conf=conf, is_quiet=is_quiet)
    return session_of(spark)


def stop_spark(spark: Spark) -> None:
    """Stop it; where its JVM or its server is gone, whoever needed it has told so already."""
    try:
        spark.stop()
    except Exception as error:
        logger.debug("Spark could not be stopped: %s", error)


def leave_spark(spark: Spark) -> None:
    """Stop it in a process that is about to end, and starts no other one.

    PySpark waits up to a second after its JVM has stopped, for a thread of its own that looks for its end as often.
    """
    if is_connect(spark):
        stop_spark(spark)
        return
    stopping = threading.Thread(target=stop_spark, args=(spark,), name="arroyo-leave-spark", daemon=True)
    stopping.start()
    context = context_of(spark)
    while stopping.is_alive() and getattr(context, "_jsc", None) is not None:
        stopping.join(0.01)


def is_one_machine(spark: Spark) -> bool:
    """Whether tasks are known to run on the driver's machine; a Connect server's own `local` is another one's."""
    return not is_connect(spark) and context_of(spark).master.startswith("local")


def _has_own_workers(master: str, conf: Mapping[str, str]) -> bool:
    """Whether a JVM is to be started that runs tasks itself, with this very interpreter for its workers."""
    from pyspark import SparkContext

    return (
        master.startswith("local")
        and SparkContext._active_spark_context is None
        and os.environ["PYSPARK_PYTHON"] == sys.executable
        and not {"spark.pyspark.python", "spark.python.daemon.module"} & conf.keys()
        and os.name == "posix"
    )


def _start_workers(context: SparkContext, count: int | None) -> None:
    """The first job of a JVM takes longest: it is one that has nothing to do."""
    try:
        run_empty_job(context, min(count or context.defaultParallelism, context.defaultParallelism))
    except Exception as error:
        # Whatever it is, the first real job meets it too, and tells of it.
        logger.debug("workers could not be started: %s", error)


def _connect(name: str, url: str, conf: Mapping[str, str]) -> SparkSession:
    _check_reachable(url)
    try:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.appName(f"arroyo {name}").remote(url)
        for key, value in (_BATCHES | dict(conf)).items():
            builder = builder.config(key, value)
        return builder.getOrCreate()
    except ImportError as error:
        raise SetupError(f"Spark Connect needs more packages: pip install 'arroyo-core[connect]' ({error})") from error
    except Exception as error:
        raise SetupError(f"Spark Connect at {url} cannot be reached: {_first_line(error)}") from error


def _check_reachable(url: str) -> None:
    """Spark Connect's client would try for ten minutes."""
    error = _connection_error(url, CONNECT_PORT)
    if error is not None:
        raise SetupError(f"Spark Connect at {url} cannot be reached: {error}") from error


def _check_cluster(url: str) -> None:
    """Spark would try for a minute, and not say why it failed; of several masters one is enough."""
    masters = [f"spark://{address}" for address in url.removeprefix("spark://").split(",")]
    errors = [_connection_error(master, MASTER_PORT) for master in masters]
    if all(error is not None for error in errors):
        raise SetupError(f"the Spark master at {url} cannot be reached: {errors[0]}") from errors[0]


def _connection_error(url: str, default_port: int) -> OSError | ValueError | None:
    """Why nothing answers there, if nothing does."""
    try:
        address = urlsplit(url)
        socket.create_connection((address.hostname or "", address.port or default_port), timeout=10).close()
    except (OSError, ValueError) as error:
        return error
    return None


def _settings(name: str, master: str, java: str, *, is_quiet: bool) -> dict[str, str]:
    from pyspark.find_spark_home import _find_spark_home

    settings = {**_SETTINGS, "spark.app.name": f"arroyo {name}", "spark.master": _with_retries(master)}
    options = [*java_options(master), *archive_options(java, Path(_find_spark_home()) / "jars")]
    if is_quiet:
        quiet = Path(__file__).with_name("log4j2-quiet.properties")
        options.append(f"-Dlog4j2.configurationFile={quiet.as_uri()}")
    settings["spark.driver.extraJavaOptions"] = " ".join(options)
    settings["spark.python.daemon.module"] = MODULE
    settings |= _for_workers(daemon_environment())
    if master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return settings


def _for_workers(environment: Mapping[str, str]) -> dict[str, str]:
    """Settings that give Python workers, and their daemon, this environment."""
    return {f"spark.executorEnv.{name}": value for name, value in environment.items()}


def java_options(master: str) -> list[str]:
    """What the driver's JVM is told for this master, which only moves bytes."""
    is_small = 0 < _threads(master) <= SERIAL_THREADS
    # What the second compiler could gain, it would cost in starting.
    return ["-XX:TieredStopAtLevel=1", *(_SMALL_HEAP if is_small else ())]


def _threads(master: str) -> int:
    """How many tasks run at once in the driver's JVM; none unless the master is `local`."""
    found = re.match(r"local(?:\[(\*|\d+))?", master)
    if found is None:
        return 0
    return os.cpu_count() or 1 if found[1] == "*" else int(found[1] or 1)


def _with_retries(master: str) -> str:
    """`local` and `local[N]` never retry a task; `local[N,4]` does."""
    if master == "local":
        return "local[1,4]"
    if master.startswith("local[") and "," not in master:
        return f"{master[:-1]},4]"
    return master


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
