"""Measures both sides of one query, in this process."""

from __future__ import annotations

import gc
import shutil
import time
from pathlib import Path
from typing import Any

import yaml

from arroyo_core.pipeline import plan_pipeline
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.spark.pipeline import Pipeline

from ..nexmark.answers import Answers
from ..nexmark.dataset import prepare
from ..nexmark.engine_arroyo import answer_format
from ..nexmark.running import rotated
from ..nexmark.tasks import Timing
from .page import Measured
from .sides import ASKED, SIDES, compile_script, documents, task_of


def measure(query: str, root: Path, *, events: int, runs: int, folder: Path) -> Measured:
    """CPU seconds of this process in each run by side, after a run of each whose answer is checked."""
    dataset = prepare(root, events)
    compile_script(query)  # what is imported is not a part of compiling
    compiled = compile_script(query)
    seconds: dict[str, list[float]] = {side: [] for side in SIDES}
    nodes: dict[str, int] = {}
    for number in range(runs + 1):
        for side in rotated(SIDES, number):
            task = task_of(query, data=dataset.folder, folder=folder, side=side)
            document = documents(task, compiled.text)[side]
            spent = run_document(document, Path(task.scratch))
            if number:
                seconds[side].append(spent)
                continue
            timing = Timing(job_s=spent, epochs=1, answer=answer_format(document))
            Answers(dataset).check(ASKED[query], Path(task.answer), timing)
            nodes[side] = len(document["nodes"])
    return Measured(query=query, seconds=seconds, nodes=nodes, compiling_s=compiled.seconds)


def run_document(document: dict[str, Any], scratch: Path) -> float:
    """One run of a job, in this process; planning is not counted."""
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    file = scratch / "pipeline.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    plugins = installed_plugins()
    pipeline = Pipeline(plan_pipeline(file, plugins=plugins, environment={}), plugins)
    gc.collect()
    start = time.process_time()
    if not pipeline.run(executor=LocalExecutor(plugins)).is_finished:
        raise RuntimeError(f"{document['name']} did not finish")
    return time.process_time() - start
