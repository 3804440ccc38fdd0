"""Epochs as Spark jobs, and what to make of one that fails."""

from __future__ import annotations

import logging
import pickle
import re
from uuid import uuid4

from arroyo_core.errors import ArroyoError, Domain, ExternalError
from arroyo_core.pipeline.plan import Plan
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.request import EpochRequest
from arroyo_core.spark.inputs import InputGiver
from arroyo_core.spark.missing import explain_missing
from arroyo_core.spark.refusals import refusal_of
from arroyo_core.spark.shuffles import RowExchange, Spark, exchange_for, session_of

logger = logging.getLogger(__name__)

#: The errors in a traceback that say that a service was away.
_OUTAGES = {
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "ExternalError",
    "StateError",
    "StorageError",
    "TimeoutError",
}

#: Spark Connect, and a context that was stopped.
_LOST_SESSION = re.compile(
    r"SESSION_(CLOSED|NOT_FOUND|CHANGED)|NO_ACTIVE_SESSION|SparkContext (was|has been) (stopped|shut down)"
    r"|stopped SparkContext"
)


#: What Spark says when a Python worker is gone that was not asked to go.
_DEAD_WORKER = "Python worker exited unexpectedly"


class SparkJobError(ExternalError):
    """The Spark job died for a reason that no operator reported, such as lost executors."""


class SparkTaskError(ArroyoError):
    """Code of ours failed in a Spark task before it could report: a package is missing there, most often."""

    domain = Domain.USER


class SparkWorkerError(ArroyoError):
    """A Python worker died in every attempt of a task: what it runs kills it, and would again."""

    domain = Domain.USER


class SparkRefusedError(ArroyoError):
    """Spark does not run the job, for a reason that stays: a setting, a missing class, something it cannot send."""

    domain = Domain.USER


class SparkLostError(ArroyoError):
    """The session is gone, and every further job would fail."""

    domain = Domain.EXTERNAL


class SparkExecutor:
    """Runs each epoch as one Spark job, and says in plain words why it failed."""

    def __init__(self, spark: Spark, giver: InputGiver | None = None) -> None:
        """With a `giver` there are DataFrames to read, which only the DataFrame API can bring to a wave."""
        self._exchange = exchange_for(spark) if giver is None else RowExchange(session_of(spark), giver)
        #: Names this driver's jobs among all of the session.
        self._tag = f"arroyo-{uuid4().hex}"

    def run_epoch(self, plan: Plan, request: EpochRequest) -> list[pb.ChainReport]:
        waves = "1 wave" if plan.wave_count == 1 else f"{plan.wave_count} waves"
        self._exchange.tag(self._tag, f"arroyo {plan.job_id}: epoch {request.epoch}, {waves}", pool=plan.job_id)
        try:
            return self._exchange.run(plan, request)
        except Exception as error:
            translated = translate(error)
            if translated is error:
                raise
            raise translated from error

    def cancel(self) -> None:
        self._exchange.cancel(self._tag)

    def progress(self) -> str:
        return self._exchange.progress(self._tag)

    def close(self) -> None:
        """No epoch follows. Where Spark is gone, so is what was left with it."""
        try:
            self._exchange.close()
        except Exception as error:
            logger.debug("what was left with Spark could not be deleted: %s", error)


def translate(error: Exception) -> Exception:
    """What a job of Spark raised, in plain words; anything else as it is."""
    failed, lost = _spark_errors()
    if isinstance(error, failed):
        return _without_java(error)
    if isinstance(error, lost):
        return _lost(error)
    if isinstance(error, pickle.PicklingError):
        return SparkRefusedError(f"the pipeline cannot be sent to Spark's tasks: {error}")
    return error


def _spark_errors() -> tuple[tuple[type[Exception], ...], tuple[type[Exception], ...]]:
    """What a job raises that fails, and what the loss of Spark does; the thin client has neither a JVM nor py4j."""
    from pyspark.errors import PySparkException

    try:
        from py4j.protocol import Py4JError, Py4JJavaError
    except ImportError:
        return (PySparkException,), (ConnectionError, EOFError)
    return (PySparkException, Py4JJavaError), (Py4JError, ConnectionError, EOFError)


def _without_java(error: Exception) -> ArroyoError:
    """What a person needs of Spark's error: the Python traceback if there is one, else its first line."""
    text = str(error)
    missing = explain_missing(text)
    if missing is not None:
        return missing
    traceback = re.search(
        r"Traceback \(most recent call last\):.*?(?=\n\s+at [\w.$]+\(|\n SQLSTATE|\Z)", text, re.DOTALL
    )
    if traceback:
        return _task_error(traceback[0].rstrip())
    if _DEAD_WORKER in text:
        return _dead_worker()
    reason = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    if _LOST_SESSION.search(text):
        return _lost(error)
    refusal = refusal_of(error)
    if refusal is not None:
        return SparkRefusedError(f"Spark refuses the job, and would again: {refusal}")
    return SparkJobError(f"the Spark job failed: {reason}")


def _task_error(traceback: str) -> ArroyoError:
    """An outage is worth another try, and says so by its name; anything else would only fail again."""
    kind = traceback.splitlines()[-1].partition(":")[0].rpartition(".")[2]
    message = f"a Spark task failed:\n{traceback}"
    return SparkJobError(message) if kind in _OUTAGES else SparkTaskError(message)


def _dead_worker() -> SparkWorkerError:
    return SparkWorkerError(
        "a Python worker died in every attempt of a task: code that it runs (a user function, an operator, a library) "
        "ended its process or crashed it, or it needed more memory than there is"
    )


def _lost(error: Exception) -> SparkLostError:
    reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return SparkLostError(
        f"the Spark session is gone ({reason}); start the job again, it goes on from its last checkpoint"
    )
