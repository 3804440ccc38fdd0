"""Who else is told about the jobs of `arroyo run`: what plugins bring through `arroyo_observe`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.runtime.job import SilentListener


class Observer(SilentListener):
    """Is told about all jobs of one command, each in the thread that runs it; `JobResult.job_id` says which.

    Entered before the first job starts, and left when all have ended.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def on_failure(self, job_id: str, error: BaseException) -> None:
        """Called before `on_end` for a job that failed, or was interrupted."""

    def on_end(self, job_id: str) -> None:
        """Called once for each job: it has ended, in whatever way, or an earlier run had finished it."""


def enter_observers(
    args: argparse.Namespace, plans: Sequence[Plan], plugins: PluginSet, resources: ExitStack
) -> list[Observer]:
    """All observers that plugins have for these jobs; `resources` leaves them. Raises what one raises on entering."""
    found = plugins.hooks.call_all("arroyo_observe", Observer, args=args, plans=plans)
    return [resources.enter_context(observer) for observer in found]
