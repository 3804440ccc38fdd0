"""For tests of operators and pipelines without Spark: harnesses, an injected clock, an in-process runner."""

from arroyo_core.testing.clock import FakeClock
from arroyo_core.testing.harness import OperatorHarness
from arroyo_core.testing.in_process import run_in_process
from arroyo_core.testing.parallel import ParallelHarness
from arroyo_core.testing.source_harness import SourceHarness, SourceRun

__all__ = ["FakeClock", "OperatorHarness", "ParallelHarness", "SourceHarness", "SourceRun", "run_in_process"]
