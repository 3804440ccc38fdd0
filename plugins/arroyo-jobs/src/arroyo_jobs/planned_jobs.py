"""Plans several pipelines, and finds the mistakes of all of them before anything runs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arroyo_core.cli.failures import JobsFailedError
from arroyo_core.cli.options import given_parameters
from arroyo_core.errors import ArroyoError, InvalidPipelineError, Location, PipelineError
from arroyo_core.pipeline.document import YamlMap
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.languages import language_of
from arroyo_core.pipeline.mistakes import Mistakes, nearest
from arroyo_core.pipeline.planner import read_text
from arroyo_core.pipeline.written import WrittenPipeline, load_pipeline
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.start import Start
from arroyo_core.spark.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A pipeline that can be run, and how it would start; None where it keeps no checkpoints."""

    file: str
    pipeline: Pipeline
    start: Start | None

    @property
    def name(self) -> str:
        return self.pipeline.plan.job_id


def plan_jobs(files: Sequence[str], args: argparse.Namespace) -> list[PlannedJob]:
    """Plan every file, and compare it with its checkpoints; raises `JobsFailedError` with all that is wrong."""
    written = {file: _written(file) for file in files}
    given = given_parameters(args)
    failures: dict[str, Exception] = {}
    unknown = _unknown_parameters(given, written)
    if unknown:
        failures["--set:"] = InvalidPipelineError(unknown)
    planned: list[PlannedJob] = []
    for file in files:
        declared = _declared(written[file])
        try:
            pipeline = Pipeline.from_yaml(
                file,
                parallelism=args.parallelism,
                allow_unpinned=args.insecure_udfs,
                parameters={name: value for name, value in given.items() if name in declared},
            )
            _check_name(file, written[file], pipeline, planned)
            planned.append(PlannedJob(file, pipeline, pipeline.check_start()))
        except ArroyoError as error:
            failures[f"{file}:"] = error
    if failures:
        raise JobsFailedError(failures)
    return planned


def _written(file: str) -> WrittenPipeline | None:
    """The file before it is planned; None where it cannot be read, which its planning reports."""
    mistakes = Mistakes()
    try:
        text = read_text(file, mistakes)
        language = language_of(file, installed_plugins())
        return load_pipeline(
            text,
            file=file,
            environment=Environment(os.environ),
            given={},
            mistakes=mistakes,
            language=language,
            has_nodes=False,
        )
    except ArroyoError:
        return None


def _declared(written: WrittenPipeline | None) -> Sequence[str]:
    return tuple(written.parameters) if written is not None else ()


def _unknown_parameters(given: Mapping[str, str], written: Mapping[str, WrittenPipeline | None]) -> list[PipelineError]:
    """A parameter is for the pipelines that declare it; one that none declares is a mistake.

    Nothing is said while a file cannot be read: it may be the one.
    """
    if None in written.values():
        return []
    declared = {name for each in written.values() for name in _declared(each)}
    return [
        PipelineError(
            f"none of the pipelines has a parameter {name!r}",
            value=name,
            allowed=sorted(declared),
            suggestion=nearest(name, declared),
        )
        for name in given
        if name not in declared
    ]


def _check_name(file: str, written: WrittenPipeline | None, pipeline: Pipeline, planned: Sequence[PlannedJob]) -> None:
    """Messages, metrics and checkpoints go by the name of a pipeline."""
    name = pipeline.plan.job_id
    other = next((job.file for job in planned if job.name == name), None)
    if other is not None:
        message = f"{other} has the name {name!r} too: pipelines that run together need names of their own"
        raise InvalidPipelineError([PipelineError(message, at=_place_of_name(file, written), value=name)])


def _place_of_name(file: str, written: WrittenPipeline | None) -> Location:
    root = written.root if written is not None else None
    entry = root.entry("name") if isinstance(root, YamlMap) else None
    return entry.value.at if entry is not None else Location(file, 1, 1)
