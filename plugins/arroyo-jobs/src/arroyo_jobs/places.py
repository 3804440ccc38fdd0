"""Which jobs are at a place: below a checkpoint URL, of a pipeline file, or of a folder of such files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from arroyo_core.api.urls import absolute_url
from arroyo_core.cli.jobs import NamedJob, is_pipeline, job_of
from arroyo_core.errors import ConfigError, InvalidPipelineError
from arroyo_core.state import get_storage_provider, paths
from arroyo_core.state.inspection import find_started_jobs


def jobs_at(place: str) -> list[NamedJob]:
    """The jobs below a checkpoint URL; that of a pipeline file; those of all pipeline files of a folder.

    A folder that has both is both. Files of a folder that are no pipelines are passed over.
    """
    if is_pipeline(place):
        found = {job_of(Path(place))}
    elif "://" in place:
        storage = get_storage_provider(place)
        found = {NamedJob(storage.url, job) for job in find_started_jobs(storage)}
    elif Path(place).is_dir():
        # Not all of the folder is looked through, as a store would be: it may be anything.
        started = {paths.decode_id(folder.parent.name) for folder in Path(place).glob("*/generations")}
        found = {NamedJob(absolute_url(place), job) for job in started} | set(_jobs_of_files(Path(place)))
    else:
        raise ConfigError(f"there is no folder and no pipeline {place!r}", value=place)
    return sorted(found, key=lambda named: (named.job, named.url))


def _jobs_of_files(folder: Path) -> Iterator[NamedJob]:
    for path in sorted(folder.iterdir()):
        if is_pipeline(str(path)):
            try:
                yield job_of(path)
            except (ConfigError, InvalidPipelineError):
                continue
