"""What Spark says of executors that lack something becomes a sentence about what, where, and what to do."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from arroyo_core.errors import Domain, RetryHint, retry_hint
from arroyo_core.spark.executor import _without_java
from arroyo_core.spark.missing import MissingPackageError, explain_missing

#: As pyspark 4.3 raises them, cut short.
LOST = (
    "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most "
    "recent failure: Lost task 0.3 in stage 0.0 (TID 3) (10.0.0.5 executor 1): "
)
NO_DAEMON = (
    LOST
    + """org.apache.spark.SparkException:
Error from python worker:
  /usr/bin/python3: Error while finding module specification for 'arroyo_core.spark.daemon_entry' \
(ModuleNotFoundError: No module named 'arroyo_core')
PYTHONPATH was:
  /opt/spark/python/lib/pyspark.zip
org.apache.spark.SparkException: EOFException occurred while reading the port number from daemon_entry's stdout.
\tat org.apache.spark.api.python.PythonWorkerFactory.startDaemon(PythonWorkerFactory.scala:382)
"""
)
BROKEN_DAEMON = (
    LOST
    + """org.apache.spark.SparkException:
Error from python worker:
  Traceback (most recent call last):
    File "/opt/arroyo_core/plugin/discovery.py", line 11, in <module>
      import pluggy
  ModuleNotFoundError: No module named 'pluggy'
PYTHONPATH was:
  /opt/spark/python/lib/pyspark.zip
"""
)
NO_PICKLE = (
    LOST
    + """org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/opt/spark/python/lib/pyspark.zip/pyspark/serializers.py", line 483, in loads
    return cloudpickle.loads(obj, encoding=encoding)
ModuleNotFoundError: No module named 'arroyo_core'

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:624)
"""
)
NO_PYTHON = LOST + (
    'java.io.IOException: Cannot run program "/opt/env/bin/python3.12": error=2, No such file or directory\n'
    "\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)\n"
)
OTHER_PYTHON = (
    LOST
    + """org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/opt/spark/python/lib/pyspark.zip/pyspark/worker_util.py", line 100, in check_python_version
    raise PySparkRuntimeError(
pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version: \
3.9 than that in driver: 3.11, PySpark cannot run with different minor versions.
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:624)
"""
)


class SparkFailedError(Exception):
    """Stands for what pyspark raises: only its text is read."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NO_DAEMON, f"executors have no arroyo-core {version('arroyo-core')} on 10.0.0.5 (/usr/bin/python3): install"),
        (BROKEN_DAEMON, f"executors have no pluggy {version('pluggy')} on 10.0.0.5: install"),
        (NO_PICKLE, f"executors have no arroyo-core {version('arroyo-core')} on 10.0.0.5: install"),
        (NO_PICKLE.replace("arroyo_core", "arroyo_std.sql"), f"no arroyo-std {version('arroyo-std')} on 10.0.0.5"),
        (NO_PICKLE.replace("arroyo_core", "acme"), "executors have no module 'acme' on 10.0.0.5: install"),
        (NO_PYTHON, "executors cannot start Python on 10.0.0.5: there is no /opt/env/bin/python3.12."),
        # As 3.5 writes it.
        (
            OTHER_PYTHON.replace("version: 3.9", "version (3, 9)").replace("driver: 3.11", "driver 3.11"),
            "executors have Python 3.9 on 10.0.0.5, and the driver has 3.11: both must",
        ),
        (OTHER_PYTHON, "executors have Python 3.9 on 10.0.0.5, and the driver has 3.11: both must"),
    ],
)
def test_what_is_missing_where_is_one_sentence(text, expected):
    error = _without_java(SparkFailedError(text))
    assert isinstance(error, MissingPackageError)
    assert expected in str(error)
    assert str(error).endswith("see docs/on-a-cluster.md")
    assert "spark.pyspark.python" in str(error), "it says what to do"
    assert "\n" not in str(error)
    assert (error.domain, retry_hint(error)) == (Domain.USER, RetryHint.NO_RETRY)


@pytest.mark.parametrize(
    "text",
    [
        LOST + "ExecutorLostFailure (executor 1 exited caused by one of the running tasks)",
        # It was missed, and done without.
        NO_PICKLE.replace(
            "No module named 'arroyo_core'\n", "No module named 'orjson'\n\nDuring handling:\nValueError: no rows\n"
        ),
        LOST + 'java.io.IOException: Cannot run program "nice": error=2, No such file or directory',
        "",
    ],
)
def test_other_failures_are_left_to_others(text):
    assert explain_missing(text) is None
