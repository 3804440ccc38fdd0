"""Where the epochs of a pipeline run, and why; what Spark there will be, nobody knows yet."""

from __future__ import annotations

from arroyo_core.pipeline.document import YamlMap
from arroyo_core.pipeline.planner import PlannedPipeline
from arroyo_core.pipeline.views.labels import count

#: Why Spark may have no place for live workers, whichever pipeline it is.
_WITHOUT_PLACE = "on Spark Connect, with spark.dynamicAllocation.enabled"


def epochs(pipeline: PlannedPipeline) -> str:
    """What `execution` comes to, in lines: the first says where, the others why not, or not for all of it."""
    execution = pipeline.plan.execution
    if execution == "jobs":
        root = pipeline.written.root
        is_written = isinstance(root, YamlMap) and root.entry("execution") is not None
        return f"each as a Spark job, {'as its file says' if is_written else 'which is the default'}"
    given = given_nodes(pipeline)
    if given:
        reason = f"the rows of DataFrames come through Spark jobs ({', '.join(given)})"
        return (
            f"each as a Spark job: {reason}" if execution == "auto" else f"nowhere: {reason}, and not to live workers"
        )
    slots = count(pipeline.plan.live_slots, "slot")
    if execution == "live":
        lines = [
            f"in live workers, which need {slots} of Spark for as long as the job runs",
            f"refused with fewer slots, {_WITHOUT_PLACE}",
        ]
    else:
        lines = [
            f"in live workers, where Spark runs on one machine and has {slots} for them",
            f"else each as a Spark job: on a cluster, with fewer slots, {_WITHOUT_PLACE}",
        ]
    lines.append("beside other pipelines in one 'arroyo run' each as a Spark job")
    committing = [node.id for node in pipeline.plan.nodes.values() if node.commits_with_jobs]
    if committing:
        lines.append(f"one slot of these is for the Spark jobs by which {', '.join(committing)} commits")
    rebuilt = rebuilt_nodes(pipeline)
    if rebuilt:
        named = ", ".join(f"{name} ({pipeline.plan.nodes[name].operator})" for name in rebuilt)
        lines.append(f"made again from their tables in each epoch, as they do not live on: {named}")
    return "\n".join(lines)


def given_nodes(pipeline: PlannedPipeline) -> list[str]:
    """The nodes whose rows come with the run."""
    return [name for name, operator in pipeline.operators.items() if operator.is_given]


def rebuilt_nodes(pipeline: PlannedPipeline) -> list[str]:
    """The nodes that live workers make again in each epoch."""
    return [name for name, operator in pipeline.operators.items() if not operator.lives_on()]
