"""For tests of operators and pipelines without Spark: harnesses, an injected clock, an in-process runner."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arroyo_testing.clock import FakeClock
    from arroyo_testing.harness import OperatorHarness
    from arroyo_testing.in_process import run_in_process
    from arroyo_testing.parallel import ParallelHarness
    from arroyo_testing.source_harness import SourceHarness, SourceRun

__all__ = ["FakeClock", "OperatorHarness", "ParallelHarness", "SourceHarness", "SourceRun", "run_in_process"]

_MODULES = {
    "FakeClock": "clock",
    "OperatorHarness": "harness",
    "ParallelHarness": "parallel",
    "SourceHarness": "source_harness",
    "SourceRun": "source_harness",
    "run_in_process": "in_process",
}


def __getattr__(name: str) -> Any:
    # pytest imports this package at every start, for its plugin, and must not wait for pyarrow.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value
