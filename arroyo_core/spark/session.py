"""Starts Spark, where the user passes none."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import sys
import threading
from collections.abc import Mapping, Set
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from traceback import format_exception
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from arroyo_core.errors import ArroyoError, Domain, SetupError
from arroyo_core.spark.class_archive import archive_options
from arroyo_core.spark.daemon import MODULE, daemon_environment
from arroyo_core.spark.java import check_java, java_version
from arroyo_core.spark.launch import SOCKET_FOLDER_SETTING, settings_file, socket_settings
from arroyo_core.spark.provisions import WORKER_PYTHON, Provision, check_provided, provide, provided_settings
from arroyo_core.spark.ready_daemon import ReadyDaemon
from arroyo_core.spark.refusals import cause_of
from arroyo_core.spark.releases import ARCHIVING_JAVA, BATCH_BYTES, BATCH_ROWS, FRAMES_PER_BATCH, oldest_java
from arroyo_core.spark.shuffles import KRYO, Spark, context_of, is_connect, run_empty_job, session_of
from arroyo_core.spark.slots import slots_of
from arroyo_core.spark.target import Target, redact_master, resolve_target, shown_master

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

#: Rows may be larger than a usual frame, and then fewer make a batch.
_BATCHES = {BATCH_ROWS: str(FRAMES_PER_BATCH), BATCH_BYTES: str(FRAMES_PER_BATCH << 20)}

#: With more tasks than these in one JVM, collecting garbage in a single thread would hold them up.
SERIAL_THREADS = 4

#: Serial collection, unless somebody has chosen another one, and a heap that starts small, and grows where it must.
#: What the JVM keeps is small; frames only pass through it, and would fill whatever heap there is.
_SMALL_HEAP = ("-XX:+NeverActAsServerClassMachine", "-Xms48m")

LOOPBACK = "127.0.0.1"
LOCAL_ADDRESS_VARIABLE = "SPARK_LOCAL_IP"

CONNECT_PORT = 15002
MASTER_PORT = 7077

logger = logging.getLogger(__name__)


class UnreachableSparkError(SetupError):
    """Nothing answers where Spark should be; it may, later."""

    domain = Domain.EXTERNAL


_SETTINGS = {
    **_BATCHES,
    "spark.python.unix.domain.socket.enabled": "true",
    # Each job has a pool: of several in one session none waits until all epochs of another one have run.
    "spark.scheduler.mode": "FAIR",
    # Live workers come back as soon as there are slots for them again, after an executor was lost.
    "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "600",
    "spark.serializer": KRYO,
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


#: Other users of this machine reach its loopback ports too. Where nothing is sent to other machines Spark makes the
#: secret itself, and tells nobody.
_FOR_ONE_USER = {"spark.authenticate": "true", "spark.ui.killEnabled": "false"}


def start_spark(
    name: str,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    is_quiet: bool = True,
    workers: int | None = None,
    is_live: bool = False,
    provision: Provision | None = None,
) -> Spark:
    """Start or reach Spark: `local[...]`, a cluster's URL, or Spark Connect's `sc://host:port`.

    Without a `master` it is the Spark that this process has already, or else the one of `resolve_target`.

    A session only where it is one of Spark Connect: epochs need no more than a context, and a session takes time and
    memory. On this machine there are Python workers when it returns, one for each core or as many as are asked for;
    with `is_live` for a stage of live workers. On other machines executors get the `provision`, if there is one.
    Raises `SetupError` in plain words where Java or the master is missing.
    """
    active = active_spark()
    if active is not None:
        _check_active(active, master)
        return _provided(active, provision)
    target = resolve_target(master, conf)
    if target.is_connect:
        return _provided(_connect(name, target, conf or {}), provision)
    if provision is not None and not target.is_local:
        conf = dict(conf or {}) | provided_settings(provision, conf or {}, target.given)
        target = replace(target, python=conf.get(WORKER_PYTHON, target.python))
    check_whole_pyspark(target.master)
    if target.master.startswith("spark://"):
        _check_cluster(target.master)
    # A context reads it when it is made. This very interpreter has the plugins; somebody may have chosen another one.
    os.environ["PYSPARK_PYTHON"] = target.python
    keep_pages_local(target, conf or {})
    _check_driver_python(conf or {})
    from pyspark import SparkConf, SparkContext

    chosen = dict(conf or {}) | {"spark.master": target.spark_master}
    settings = _settings(name, target, is_quiet=is_quiet)
    if _has_own_sockets(target, settings | chosen):
        settings = {**socket_settings(), **settings}
    daemon = ReadyDaemon() if _has_own_workers(target, settings.keys() - chosen.keys()) else None
    if daemon is not None:
        settings |= _for_workers(daemon.environment)
    try:
        if not target.is_submitted:
            with settings_file(settings | chosen):
                SparkContext._ensure_initialized()
        context = SparkContext.getOrCreate(SparkConf().setAll(list((settings | chosen).items())))
        if daemon is not None:
            _start_workers(context, workers, is_live=is_live)
    except Exception as error:
        if daemon is not None:
            daemon.stop()
        raise SetupError(f"Spark could not be started on {target}: {cause_of(str(error))}") from error
    if not target.is_local:
        _check_or_stop(context, provision)
    return context


def _provided(spark: Spark, provision: Provision | None) -> Spark:
    """The Spark, with the provision; not for one on this machine, whose tasks run in the driver's Python."""
    if provision is None or is_one_machine(spark):
        return spark
    try:
        provide(provision, spark, is_connect=is_connect(spark))
    except ArroyoError:
        raise
    except Exception as error:
        raise SetupError(f"{provision.asked_by}: Spark does not take the archive: {cause_of(str(error))}") from error
    check_provided(provision, spark)
    return spark


def _check_or_stop(context: SparkContext, provision: Provision | None) -> None:
    try:
        check_provided(provision, context)
    except BaseException:
        stop_spark(context)
        raise


def create_session(
    name: str,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    is_quiet: bool = True,
    is_live: bool = False,
) -> SparkSession:
    """As `start_spark`, with a session for whoever needs more than epochs."""
    spark = start_spark(name, master=master, conf=conf, is_quiet=is_quiet, is_live=is_live)
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


def active_spark() -> Spark | None:
    """The context or session that this process has already, if any: a notebook's, or one that the caller started."""
    # Whatever is active was imported; to import pyspark for nothing takes long.
    if "pyspark" not in sys.modules:
        return None
    if "pyspark.sql" in sys.modules:
        from pyspark.sql import SparkSession

        session = SparkSession.getActiveSession()
        if session is not None and is_connect(session):
            return session
    if not {"pyspark.core.context", "pyspark.context"} & sys.modules.keys():
        return None
    from pyspark import SparkContext

    context: SparkContext | None = SparkContext._active_spark_context
    return context


def ui_address(spark: Spark) -> str:
    """Where Spark's own pages are; empty where it has none, or on a server that does not tell."""
    if is_connect(spark):
        return ""
    try:
        return str(context_of(spark).uiWebUrl or "")
    except Exception as error:
        # For people to look at only: nothing rests on it.
        logger.debug("the address of Spark's pages is not known: %s", error)
        return ""


def _check_active(active: Spark, master: str | None) -> None:
    """A process has one Spark: another master cannot be had beside it."""
    if master is None or is_connect(active):
        return
    running = context_of(active).master
    if resolve_target(master).spark_master != running:
        raise SetupError(
            f"this process has a Spark on {running} already, and {shown_master(master)} cannot be started beside it: "
            "stop that one, or leave the master out to use it"
        )


def check_whole_pyspark(master: str) -> None:
    """Raise `SetupError` where pyspark can only reach Spark Connect, and another master is asked for."""
    # The thin client has no contexts; before Spark 4 they were elsewhere.
    if find_spec("pyspark.core") is None and find_spec("pyspark.context") is None:
        raise SetupError(
            f"this Python has pyspark-client, which only reaches Spark Connect, and cannot start Spark on {master}: "
            "give --master sc://host:15002, or install all of it (pip uninstall pyspark-client; pip install pyspark)"
        )


def keep_pages_local(target: Target, conf: Mapping[str, str]) -> None:
    """Bind the pages of a Spark on this machine to loopback, unless somebody has chosen an address.

    Anybody who reaches them reads settings, and can end jobs. There is no setting for it but this variable, which the
    JVM reads when it starts; on a cluster it would also be the address that executors know the driver by.
    """
    is_chosen = any("spark.driver.bindAddress" in settings for settings in (conf, target.given))
    if target.is_local and not target.is_submitted and not is_chosen:
        os.environ.setdefault(LOCAL_ADDRESS_VARIABLE, LOOPBACK)


def _check_driver_python(conf: Mapping[str, str]) -> None:
    chosen = conf.get("spark.pyspark.driver.python")
    if chosen and shutil.which(chosen) not in (None, sys.executable):
        logger.warning(
            "spark.pyspark.driver.python=%s has no effect here: the driver is this process, %s; start it as "
            "`%s -m arroyo_core run ...`, or with spark-submit",
            chosen,
            sys.executable,
            chosen,
        )


def _has_own_sockets(target: Target, settings: Mapping[str, str]) -> bool:
    """Whether sockets are to be in a folder of ours, which is on the driver's machine only.

    On others our daemon makes one. Without a daemon, and for broadcasts that are encrypted, executors make sockets
    themselves, where Spark says.
    """
    effective = {**target.given, **settings}
    if SOCKET_FOLDER_SETTING in effective or os.name != "posix":
        return False
    return target.is_local or (
        effective.get("spark.python.daemon.module") == MODULE
        and effective.get("spark.python.use.daemon", "true").strip().lower() == "true"
        and effective.get("spark.io.encryption.enabled", "false").strip().lower() == "false"
    )


def _has_own_workers(target: Target, ours: Set[str]) -> bool:
    """Whether a JVM runs tasks itself, with this very interpreter and our own daemon for its workers."""
    return (
        target.is_local
        and target.python == sys.executable
        and "spark.python.daemon.module" in ours
        and os.name == "posix"
    )


def _start_workers(context: SparkContext, count: int | None, *, is_live: bool) -> None:
    """The first job of a JVM takes longest: it is one that has nothing to do."""
    try:
        width = min(count or context.defaultParallelism, context.defaultParallelism)
        run_empty_job(context, width, is_live=is_live)
    except Exception as error:
        # Whatever it is, the first real job meets it too, and reports it.
        logger.debug("workers could not be started: %s", error)


def _connect(name: str, target: Target, conf: Mapping[str, str]) -> SparkSession:
    url, shown = target.master, target.shown_master
    _check_reachable(url)
    # Where the server is; and not where this process would start a JVM.
    chosen = {key: value for key, value in conf.items() if key not in ("spark.master", "spark.remote")}
    try:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.appName(target.app_name or f"arroyo {name}").remote(url)
        for key, value in (_BATCHES | chosen).items():
            builder = builder.config(key, value)
        return builder.getOrCreate()
    except ImportError as error:
        raise SetupError(f"Spark Connect needs more packages: pip install 'arroyo-core[connect]' ({error})") from error
    except Exception as error:
        reason = redact_master(_first_line(error), url)
        # The cause would be printed as it is, with its own causes.
        told = "".join(format_exception(error, limit=0))
        cause = error if redact_master(told, url) == told else None
        raise UnreachableSparkError(f"Spark Connect at {shown} cannot be reached: {reason}") from cause


def _check_reachable(url: str) -> None:
    """Spark Connect's client would try for ten minutes."""
    error = _connection_error(url, CONNECT_PORT)
    if error is not None:
        told = redact_master(str(error), url)
        # A port is quoted with all that follows it.
        cause = error if told == str(error) else None
        raise _unreachable(f"Spark Connect at {shown_master(url)}", error, told) from cause


def _check_cluster(url: str) -> None:
    """Spark would try for a minute, and not say why it failed; of several masters one is enough."""
    masters = [f"spark://{address}" for address in url.removeprefix("spark://").split(",")]
    errors = [_connection_error(master, MASTER_PORT) for master in masters]
    first = errors[0]
    if first is not None and all(error is not None for error in errors):
        raise _unreachable(f"the Spark master at {url}", first) from first


def _unreachable(what: str, error: OSError | ValueError, told: str = "") -> SetupError:
    """What is not an address is a mistake; an address where nobody listens may have a listener later."""
    kind = UnreachableSparkError if isinstance(error, OSError) else SetupError
    return kind(f"{what} cannot be reached: {told or error}")


def _connection_error(url: str, default_port: int) -> OSError | ValueError | None:
    """Why nothing answers there, if nothing does."""
    try:
        address = urlsplit(url)
        socket.create_connection((address.hostname or "", address.port or default_port), timeout=10).close()
    except (OSError, ValueError) as error:
        return error
    return None


def _settings(name: str, target: Target, *, is_quiet: bool) -> dict[str, str]:
    """What we choose, where nobody else has."""
    settings = {**_SETTINGS, "spark.app.name": target.app_name or f"arroyo {name}"}
    settings["spark.python.daemon.module"] = MODULE
    settings |= _for_workers(daemon_environment())
    if target.is_local:
        settings |= _FOR_ONE_USER | {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    if not target.is_submitted:
        settings["spark.driver.extraJavaOptions"] = " ".join(_jvm_options(target.spark_master, is_quiet=is_quiet))
    return {key: value for key, value in settings.items() if key not in target.given or key == "spark.app.name"}


def _jvm_options(master: str, *, is_quiet: bool) -> list[str]:
    """For the JVM that we start."""
    from pyspark.find_spark_home import _find_spark_home

    java = check_java()
    options = java_options(master)
    if oldest_java() >= ARCHIVING_JAVA or (java_version(java) or 0) >= ARCHIVING_JAVA:
        options += archive_options(java, Path(_find_spark_home()) / "jars")
    if is_quiet:
        quiet = Path(__file__).with_name("log4j2-quiet.properties")
        options.append(f"-Dlog4j2.configurationFile={quiet.as_uri()}")
    return options


def _for_workers(environment: Mapping[str, str]) -> dict[str, str]:
    """Settings that give Python workers, and their daemon, this environment."""
    return {f"spark.executorEnv.{name}": value for name, value in environment.items()}


def java_options(master: str) -> list[str]:
    """What the driver's JVM is told for this master, which only moves bytes."""
    # Threads beyond the cores are for tasks that wait, as those of many small pipelines do.
    is_small = 0 < min(slots_of(master), os.cpu_count() or 1) <= SERIAL_THREADS
    # What the second compiler could gain, it would cost in starting.
    return ["-XX:TieredStopAtLevel=1", *(_SMALL_HEAP if is_small else ())]


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
