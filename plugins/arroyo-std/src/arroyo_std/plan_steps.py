"""What a physical plan of DataFusion consists of."""

from __future__ import annotations

from datafusion.plan import ExecutionPlan


def step_names(plan: ExecutionPlan) -> list[str]:
    """The names of the steps, from the last to the first.

    Step by step: in the text of the whole plan a literal may have lines of its own.
    """
    name = plan.display().strip().partition(":")[0]
    return [name, *(found for below in plan.children() for found in step_names(below))]
