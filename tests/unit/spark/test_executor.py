"""What becomes of Spark's errors: the texts are Spark 4.3's own, cut after their first lines."""

import pickle
from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkNotImplementedError
from pyspark.errors import UnsupportedOperationException as Unsupported

from arroyo_core.errors import RetryHint, retry_hint
from arroyo_core.spark import executor
from arroyo_core.spark.executor import (
    SparkExecutor,
    SparkJobError,
    SparkLostError,
    SparkRefusedError,
    SparkTaskError,
    SparkWorkerError,
    _without_java,
)
from arroyo_core.spark.missing import MissingPackageError

CALL = "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
ABORTED = f"{CALL}: org.apache.spark.SparkException: Job aborted due to stage failure: "
LOST_TASK = (
    f"{ABORTED}Task 0 in stage 3.0 failed 4 times, most recent failure: Lost task 0.3 in stage 3.0 (TID 12) (host "
)
STACK = "\n\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:4560)\n"

REFUSED = {
    "a class that is missing": (
        "An error occurred while calling o101.load.\n: org.apache.spark.SparkClassNotFoundException: "
        "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: no.such.Source. SQLSTATE: 42K02" + STACK,
        "Failed to find the data source: no.such.Source",
    ),
    "a class that is missing in Java": (
        "An error occurred while calling z:java.lang.Class.forName.\n"
        f": java.lang.ClassNotFoundException: com.acme.Missing{STACK}",
        "com.acme.Missing",
    ),
    "a class that is missing in a task": (
        f"{LOST_TASK}executor 1): java.lang.NoClassDefFoundError: org/acme/Codec{STACK}",
        "org/acme/Codec",
    ),
    "results that are too large": (
        f"{ABORTED}Total size of serialized results of 1 tasks (3.0 MiB) is bigger than spark.driver.maxResultSize "
        f"(2.0 MiB){STACK}",
        r"bigger than spark.driver.maxResultSize \(2.0 MiB\); raise spark.driver.maxResultSize",
    ),
    "a buffer of Kryo that is too small": (
        f"{ABORTED}Task 0 in stage 1.0 failed 1 times: org.apache.spark.SparkException: Kryo serialization failed: "
        f"Buffer overflow. Available: 0, required: 3145734. To avoid this, increase spark.kryoserializer.buffer.max "
        f"value.{STACK}",
        "raise spark.kryoserializer.buffer.max",
    ),
    "a task that cannot be sent": (
        f"{ABORTED}Task not serializable: java.io.NotSerializableException: com.acme.Codec{STACK}",
        "com.acme.Codec",
    ),
}

RETRIED = {
    "a lost executor": f"{LOST_TASK}executor 1): ExecutorLostFailure (executor 1 exited caused by one of the running "
    f"tasks) Reason: Remote RPC client disassociated. Likely due to containers exceeding thresholds, or network "
    f"issues. Check driver logs for WARN messages.{STACK}",
    "a lost shuffle": f"{ABORTED}ShuffleMapStage 7 has failed the maximum allowable number of times: 4. Most recent "
    f"failure reason: org.apache.spark.shuffle.MetadataFetchFailedException: Missing an output location for shuffle 3 "
    f"partition 1{STACK}",
    "a job that was cancelled": f"{CALL}: org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 6 cancelled as "
    f"part of cancellation of all jobs SQLSTATE: XXKDA{STACK}",
    "memory that ran out": f"{LOST_TASK}executor driver): java.lang.OutOfMemoryError: Java heap space{STACK}",
}

#: As PySpark raises them itself.
OWN = [
    AnalysisException("[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `nothing` cannot be resolved."),
    IllegalArgumentException("[INVALID_CONF_VALUE.TYPE_MISMATCH] The value 'x' in the config is invalid."),
    PySparkNotImplementedError("[NOT_IMPLEMENTED] Invalid return type: StructType is not implemented."),
    Unsupported("[UNSUPPORTED_FEATURE] This is not supported."),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_spark_refuses_is_not_tried_again_and_the_reason_is_told(text, reason):
    error = _without_java(Exception(text))
    assert isinstance(error, SparkRefusedError)
    assert retry_hint(error) is RetryHint.NO_RETRY
    assert "collectAndServe" not in str(error)
    with pytest.raises(SparkRefusedError, match=reason):
        raise error


@pytest.mark.parametrize("error", OWN, ids=lambda error: type(error).__name__)
def test_what_pyspark_refuses_is_not_tried_again(error):
    assert isinstance(_without_java(error), SparkRefusedError)


@pytest.mark.parametrize("text", RETRIED.values(), ids=RETRIED)
def test_what_a_restart_may_not_meet_is_tried_again(text):
    error = _without_java(Exception(text))
    assert isinstance(error, SparkJobError)
    assert retry_hint(error) is RetryHint.WITH_BACKOFF


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            f"{LOST_TASK}executor 1): org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).",
            SparkWorkerError,
        ),
        (
            "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\nThis stopped",
            SparkLostError,
        ),
        ("Traceback (most recent call last):\n  File x\nAttributeError: module 'acme' has no 'f'\n", SparkTaskError),
        (
            "Traceback (most recent call last):\n  File x\nModuleNotFoundError: No module named 'acme'\n",
            MissingPackageError,
        ),
        (
            f'{LOST_TASK}executor driver): java.io.IOException: Cannot run program "/no/python3": error=2, No such '
            f"file or directory{STACK}Caused by: java.io.IOException: error=2, No such file or directory{STACK}",
            MissingPackageError,
        ),
    ],
)
def test_other_failures_keep_their_own_words(text, kind):
    error = _without_java(Exception(text))
    assert type(error) is kind
    assert retry_hint(error) is RetryHint.NO_RETRY


def test_what_cannot_be_pickled_is_a_refusal(monkeypatch):
    class Exchange:
        def tag(self, tag, description, *, pool):
            return

        def run(self, plan, request):
            raise pickle.PicklingError("Could not serialize object: TypeError: cannot pickle '_thread.lock' object")

    monkeypatch.setattr(executor, "exchange_for", lambda spark: Exchange())
    plan, request = SimpleNamespace(job_id="job", wave_count=1), SimpleNamespace(epoch=1)
    with pytest.raises(SparkRefusedError, match=r"cannot be sent to Spark's tasks: .*_thread.lock"):
        SparkExecutor(None).run_epoch(plan, request)
