"""Spark's Python daemon, with our modules loaded: workers are forked from it, and need not import them again."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.machinery import PathFinder
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from arroyo_core.api.limits import PREFIX
from arroyo_core.local_folders import make_socket_folder
from arroyo_core.plugin import installed_plugins
from arroyo_core.state.seals import SEAL_VARIABLES

#: What Spark starts; it comes to `main` below where the driver has no daemon ready.
MODULE = "arroyo_core.spark.daemon_entry"
#: pyarrow imports pandas for the first array that it makes of Python's values.
_ALWAYS = (
    "pyspark.worker",
    "arroyo_core.spark.worker",
    "arroyo_core.spark.live",
    "arroyo_core.state.local_storage",
    "pandas",
)
_PRELOAD_VARIABLE = "ARROYO_PRELOAD"
#: Where Spark lets its daemon make a socket, if it is to make one at all.
_SOCKETS_VARIABLE = "PYTHON_WORKER_FACTORY_SOCK_DIR"

#: How workers keep memory, unless somebody has chosen otherwise: what one batch has used is there for the next one. By
#: itself, the C library returns arrays of half a megabyte to the system when they are let go, and up to a third of the
#: time goes into getting them again.
_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(8 * 2**20), "MALLOC_TRIM_THRESHOLD_": str(16 * 2**20)}

#: Spark has closed its end.
_CLOSED = (BrokenPipeError, ConnectionResetError)


def daemon_environment() -> dict[str, str]:
    """For the daemon: which modules of plugins to load, namely those that the driver has loaded; the driver's limits.

    Libraries must not start threads there: they would be missing in the workers, which also inherit how memory is kept.
    """
    roots = {point.module.partition(".")[0] for point in entry_points(group="arroyo_core")}
    names = sorted(name for name in list(sys.modules) if name.partition(".")[0] in roots)
    return {
        _PRELOAD_VARIABLE: ",".join(names),
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
        "OPENBLAS_NUM_THREADS": "1",
        **{name: os.environ.get(name, value) for name, value in _MEMORY.items()},
        **{name: value for name, value in os.environ.items() if name.startswith(PREFIX)},
    }


def preload(names: Iterable[str]) -> None:
    """Import what tasks will import; what cannot be imported is theirs to report."""
    for name in (*_ALWAYS, *names):
        # Whatever a plugin raises: without the daemon there is no task, and no report of it.
        with contextlib.suppress(Exception, SystemExit):
            importlib.import_module(name)
    with contextlib.suppress(Exception, SystemExit):
        installed_plugins()
    # Workers look for garbage after every task; none of this is.
    gc.collect()
    gc.freeze()


def unzipped(paths: Sequence[str]) -> list[str]:
    """A path to import from without the zip that Spark puts in front, if the package lies unpacked around it.

    Modules in a zip are compiled again by every daemon.
    """
    rest = [path for path in paths if not path.endswith("pyspark.zip")]
    found = PathFinder.find_spec("pyspark", rest)
    if found is None or found.origin is None:
        return list(paths)
    package = Path(found.origin).parent
    zips = [path for path in paths if path not in rest]
    return rest if all(Path(path).is_relative_to(package) for path in zips) else list(paths)


def ending_quietly(worker: Callable[[Any, bool], int]) -> Callable[[Any, bool], int]:
    """A worker that ends without a traceback when Spark has closed its socket: nobody waits for an answer then."""

    def work(sock: Any, authenticated: bool) -> int:
        # What was written and not sent is tried once more when its buffer goes, and Python 3.13 reports that, too.
        sys.unraisablehook = unless_closed(sys.unraisablehook)
        try:
            return worker(sock, authenticated)
        except _CLOSED:
            return 1

    return work


def unless_closed(report: Callable[[Any], Any]) -> Callable[[Any], None]:
    """A report of errors that nobody can catch, without those of a socket that the other end has closed."""

    def hook(error: Any) -> None:
        if not isinstance(error.exc_value, _CLOSED):
            report(error)

    return hook


def load() -> None:
    """Everything that workers are to have when they are forked."""
    preload(filter(None, os.environ.get(_PRELOAD_VARIABLE, "").split(",")))


def run() -> None:
    """Serve Spark until it closes the standard input."""
    from pyspark import daemon

    for name in SEAL_VARIABLES:
        # Workers run the code of users, and need no key.
        os.environ.pop(name, None)
    daemon.worker = ending_quietly(daemon.worker)
    with _own_socket_folder():
        daemon.manager()


@contextlib.contextmanager
def _own_socket_folder() -> Iterator[None]:
    """Let the daemon listen where only this user can connect; it tells Spark where that is.

    What the driver chose may be a folder of another machine, or one of everybody's.
    """
    if _SOCKETS_VARIABLE not in os.environ:
        yield
        return
    folder, owner = make_socket_folder(), os.getpid()
    os.environ[_SOCKETS_VARIABLE] = str(folder)
    try:
        yield
    finally:
        # Workers are forks of this process, and leave by here too.
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    sys.path[:] = unzipped(sys.path)
    load()
    run()


if __name__ == "__main__":
    main()
