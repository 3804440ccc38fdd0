"""The Spark that several jobs share.

A source holds its task for as long as an epoch lasts, mostly waiting. Jobs of which each has its own tasks at once do
not wait for each other; a thread of the JVM and a Python worker for each task is what that costs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from arroyo_core.errors import SetupError
from arroyo_core.pipeline.plan import Plan
from arroyo_core.spark.target import LOCAL_MASTER, Target


def shared_master(target: Target, slots: int) -> str:
    """The master for jobs that run `slots` tasks at once together; raises `SetupError` where they cannot share it."""
    if target.is_connect:
        raise SetupError(
            f"several pipelines cannot share a session of Spark Connect ({target}), which does not tell their "
            "progress apart: run each with a command of its own"
        )
    # More threads than cores, because most of them wait; somebody who has chosen a number has it.
    return f"local[{max(slots, os.cpu_count() or 1)}]" if target.master == LOCAL_MASTER else target.master


def told_as_jobs(plans: Sequence[Plan]) -> str:
    """What to say of the pipelines that ask for live workers; nothing where none does."""
    names = [plan.job_id for plan in plans if plan.execution != "jobs"]
    if not names:
        return ""
    return (
        f"each epoch is a Spark job ({', '.join(names)}): live workers would keep the slots of Spark that the other "
        "pipelines need"
    )
