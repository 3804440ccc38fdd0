"""Spark's Python daemon, with our modules loaded: workers are forked from it, and need not import them again."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Iterable
from importlib.metadata import entry_points

MODULE = "arroyo_core.spark.daemon"
_PRELOAD_VARIABLE = "ARROYO_PRELOAD"


def daemon_environment() -> dict[str, str]:
    """For the daemon: which modules of plugins to load, namely those that the driver has loaded for its pipeline.

    Libraries must not start threads there: they would be missing in the workers.
    """
    roots = {point.module.partition(".")[0] for point in entry_points(group="arroyo_core")}
    names = sorted(name for name in list(sys.modules) if name.partition(".")[0] in roots)
    return {
        _PRELOAD_VARIABLE: ",".join(names),
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
        "OPENBLAS_NUM_THREADS": "1",
    }


def preload(names: Iterable[str]) -> None:
    """Import what tasks will import; what cannot be imported is theirs to report."""
    for name in ("pyspark.worker", "arroyo_core.spark.worker", *names):
        # Whatever a plugin raises: without the daemon there is no task, and no report of it.
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    # Workers look for garbage after every task; none of this is.
    gc.collect()
    gc.freeze()


def main() -> None:
    from pyspark.daemon import manager

    preload(filter(None, os.environ.get(_PRELOAD_VARIABLE, "").split(",")))
    manager()


if __name__ == "__main__":
    main()
