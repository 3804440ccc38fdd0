"""Which job a command is about: by a checkpoint URL, or by a pipeline file."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from arroyo_core.api.urls import absolute_url
from arroyo_core.cli.confined.policies import refuse_if_untrusted
from arroyo_core.errors import ConfigError
from arroyo_core.pipeline.document import YamlMap, YamlValue, is_unresolved
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.languages import Language, Yaml, language_of
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.planner import read_text
from arroyo_core.pipeline.spec import PipelineSpec, read_spec
from arroyo_core.pipeline.written import load_pipeline
from arroyo_core.plugin import installed_plugins
from arroyo_core.state import ParquetBackend, StorageProvider, get_storage_provider
from arroyo_core.state.inspection import find_jobs

#: Of the files that are pipelines in the core's own language.
SUFFIXES = (".yaml", ".yml")


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
    if is_pipeline(url):
        named = job_of(Path(url))
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


def is_pipeline(place: str) -> bool:
    """Whether this is the path of a file that may be a pipeline."""
    return Path(place).is_file() and (place.endswith(SUFFIXES) or not isinstance(_language(place), Yaml))


def job_of(path: Path) -> NamedJob:
    """The name and the checkpoint URL of a pipeline; its operators are not looked at, nor need they be installed.

    Raises `InvalidPipelineError` for what is not a pipeline, `ConfigError` for one without a URL, and `SetupError`
    where pipelines are not trusted: the URL may have variables, and its server is asked.
    """
    refuse_if_untrusted()
    mistakes = Mistakes()
    written = load_pipeline(
        read_text(path, mistakes),
        file=str(path),
        environment=Environment(os.environ),
        given={},
        mistakes=mistakes,
        language=_language(path),
        has_nodes=False,
    )
    spec: PipelineSpec | None = None if written is None else read_spec(written.root, Mistakes())
    if written is None or spec is None or not spec.name or not (spec.nodes or _has_untold_nodes(written.root)):
        mistakes.add(f"{path} is not a pipeline: it has no name, or no nodes", at=None)
        mistakes.raise_if_any()
        raise AssertionError("it has a mistake")
    if spec.checkpoint.url is None:
        raise ConfigError(f"{path} has no 'checkpoint: {{url: ...}}' that can be read", value=str(path))
    return NamedJob(absolute_url(spec.checkpoint.url), spec.name)


def _language(path: str | Path) -> Language:
    """No plugin is loaded for files of the core's own language."""
    return Yaml() if str(path).endswith(SUFFIXES) else language_of(path, installed_plugins())


def _has_untold_nodes(root: YamlValue) -> bool:
    nodes = root.entry("nodes") if isinstance(root, YamlMap) else None
    return nodes is not None and is_unresolved(nodes.value)
