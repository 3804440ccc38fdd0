"""The Spark session of the driver."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from arroyo_core.errors import SetupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def driver_session() -> SparkSession:
    """The session of the process that runs the job, whichever thread asks; raises `SetupError` where it has none."""
    if "pyspark" in sys.modules:
        from pyspark.sql import SparkSession

        active = SparkSession.getActiveSession()
        if active is not None:
            return active
        if _has_context():
            return SparkSession.builder.getOrCreate()
        remote = _default_remote()
        if remote is not None:
            return remote
    raise SetupError("spark.sink needs Spark in the driver, which commits with its writer, and this process has none")


def _has_context() -> bool:
    try:
        from pyspark import SparkContext
    except ImportError:
        # The thin client of Spark Connect.
        return False
    return SparkContext._active_spark_context is not None


def _default_remote() -> SparkSession | None:
    if "pyspark.sql.connect.session" not in sys.modules:
        return None
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    found: SparkSession | None = RemoteSession._default_session
    return found
