"""Whole pipelines in this process: the same waves, frames and epochs as on Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from arroyo_core.pipeline import plan_pipeline
from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet, installed_plugins
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.results import JobResult
from arroyo_core.runtime.user_code import BundleOpener
from arroyo_core.spark.pipeline import Pipeline


def run_in_process(
    pipeline: Plan | str | os.PathLike[str],
    *,
    plugins: PluginSet | None = None,
    parallelism: int | None = None,
    parameters: Mapping[str, str | int | float | bool] = MappingProxyType({}),
) -> JobResult:
    """Run a pipeline file or a plan to its end, without Spark; a file with values for its parameters."""
    plugins = plugins or installed_plugins()
    if not isinstance(pipeline, Plan):
        pipeline = plan_pipeline(
            Path(pipeline),
            plugins=plugins,
            environment=os.environ,
            parallelism=parallelism,
            bundles=BundleOpener(),
            parameters=parameters,
        )
    return Pipeline(pipeline, plugins).run(executor=LocalExecutor(plugins))
