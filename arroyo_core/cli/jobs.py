"""Which jobs a command is about: by a checkpoint URL, by a pipeline file, or by a folder of such files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from arroyo_core.api.urls import absolute_url
from arroyo_core.errors import ConfigError, InvalidPipelineError
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.languages import Yaml
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.planner import read_text
from arroyo_core.pipeline.spec import PipelineSpec, read_spec
from arroyo_core.pipeline.written import load_pipeline
from arroyo_core.state import ParquetBackend, StorageProvider, get_storage_provider, paths
from arroyo_core.state.inspection import find_jobs, find_started_jobs

_SUFFIXES = (".yaml", ".yml")


def add_job_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `open_backend` reads."""
    parser.add_argument(
        "url",
        metavar="URL[#JOB]|FILE",
        help="the pipeline's checkpoint URL, with or without the job's folder; or the pipeline's file",
    )
    parser.add_argument("--job", metavar="NAME", help="as #JOB; one of them is needed where several jobs share the URL")


def open_backend(args: argparse.Namespace, find: Callable[[StorageProvider], list[str]] = find_jobs) -> ParquetBackend:
    """The job that the arguments name, or the only one that `find` finds."""
    url, wanted = args.url, args.job
    if _is_pipeline(url):
        named = _job_of(Path(url))
        url, wanted = named.url, wanted or named.job
    if wanted is None and "#" in url:
        url, _, wanted = url.rpartition("#")
    storage = get_storage_provider(url)
    jobs = find(storage)
    parent, _, folder = url.rstrip("/").rpartition("/")
    if not jobs and parent:
        # The URL may name the job's own folder.
        storage = get_storage_provider(parent)
        jobs = [job for job in find(storage) if job == folder]
    if wanted is not None:
        if wanted not in jobs:
            raise ConfigError(f"no checkpoint of job {wanted!r} below {url}", value=wanted, allowed=jobs)
        return ParquetBackend(storage, wanted)
    if not jobs:
        raise ConfigError(f"no checkpoint below {url}", value=url)
    if len(jobs) > 1:
        raise ConfigError(f"several jobs share {url}: choose one with --job ({', '.join(jobs)})", allowed=jobs)
    return ParquetBackend(storage, jobs[0])


@dataclass(frozen=True, slots=True)
class NamedJob:
    """A job, and where its checkpoints are."""

    url: str
    job: str


def jobs_at(place: str) -> list[NamedJob]:
    """The jobs below a checkpoint URL; that of a pipeline file; those of all pipeline files of a folder.

    A folder that has both is both. Files of a folder that are no pipelines are passed over.
    """
    if _is_pipeline(place):
        found = {_job_of(Path(place))}
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
        if path.suffix in _SUFFIXES and path.is_file():
            try:
                yield _job_of(path)
            except (ConfigError, InvalidPipelineError):
                continue


def _is_pipeline(place: str) -> bool:
    return place.endswith(_SUFFIXES) and Path(place).is_file()


def _job_of(path: Path) -> NamedJob:
    """The name and the checkpoint URL of a pipeline; its operators are not looked at, nor need they be installed.

    Raises `InvalidPipelineError` for what is not a pipeline, and `ConfigError` for one without a URL.
    """
    mistakes = Mistakes()
    written = load_pipeline(
        read_text(path, mistakes),
        file=str(path),
        environment=Environment(os.environ),
        given={},
        mistakes=mistakes,
        language=Yaml(),
    )
    spec: PipelineSpec | None = None if written is None else read_spec(written.root, Mistakes())
    if spec is None or not spec.name or not spec.nodes:
        mistakes.add(f"{path} is not a pipeline: it has no name, or no nodes", at=None)
        mistakes.raise_if_any()
        raise AssertionError("it has a mistake")
    if spec.checkpoint.url is None:
        raise ConfigError(f"{path} has no 'checkpoint: {{url: ...}}' that can be read", value=str(path))
    return NamedJob(absolute_url(spec.checkpoint.url), spec.name)
