"""Starts a run: a process of its own session that outlives the server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from arroyo_console.checkpoint_urls import with_checkpoint_url
from arroyo_console.folders import LOG, OUTPUT, Folders
from arroyo_console.values import Language
from arroyo_core.api.urls import absolute_url
from arroyo_core.cli.jobs import NamedJob, job_of
from arroyo_core.errors import ConfigError
from arroyo_core.local_folders import make_private_folder, private_opener

#: What a run must not have of the server's environment: its variables can be read by pipelines.
TOKEN_VARIABLES = ("ARROYO_CONSOLE_TOKEN", "ARROYO_CONSOLE_READ_TOKEN")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSettings:
    """How the server starts jobs."""

    #: For `arroyo run --master`; None for Spark's own choice.
    master: str | None = None
    conf: tuple[str, ...] = ()
    #: Without Spark, one task after the other: for small data and tests.
    is_in_process: bool = False
    insecure_udfs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One start of one job."""

    job_id: str
    pipeline_id: str
    number: int
    language: Language
    text: str
    parallelism: int | None
    is_fresh: bool


def write_text(folders: Folders, launch: Launch) -> tuple[Path, NamedJob]:
    """Write the text of a run into its folder, with a checkpoint URL where it has none, and say which job it is.

    Raises `InvalidPipelineError` for a text that is not a pipeline, and `OSError`.
    """
    path = folders.text(launch.job_id, launch.number, launch.language)
    make_private_folder(path.parent)
    _write(path, launch.text)
    try:
        return path, job_of(path)
    except ConfigError:
        url = absolute_url(str(folders.checkpoints(launch.pipeline_id)))
    try:
        _write(path, with_checkpoint_url(launch.text, launch.language, url))
    except (ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"the pipeline says no 'checkpoint: {{url: ...}}', and none can be added: {error}") from error
    return path, job_of(path)


def run_arguments(path: Path, launch: Launch, settings: LaunchSettings) -> list[str]:
    """What `arroyo` is started with."""
    arguments = ["run", str(path), "--progress", "brief", "--journal", str(path.parent)]
    if launch.parallelism is not None:
        arguments += ["--parallelism", str(launch.parallelism)]
    if launch.is_fresh:
        arguments += ["--fresh", "--force"]
    if settings.insecure_udfs:
        arguments += ["--insecure-udfs"]
    if settings.is_in_process:
        return [*arguments, "--in-process"]
    if settings.master is not None:
        arguments += ["--master", settings.master]
    for pair in settings.conf:
        arguments += ["--conf", pair]
    return arguments


def start_process(folder: Path, arguments: Sequence[str], *, environment: Mapping[str, str]) -> int:
    """Start a run, whose files are in `folder`; its pid. Raises `OSError`."""
    kept = {name: value for name, value in environment.items() if name not in TOKEN_VARIABLES}
    # Added to at the end, so that a file that was cut short by somebody goes on at its new end.
    with (
        open(folder / LOG, "ab", opener=private_opener) as log,
        open(folder / OUTPUT, "ab", opener=private_opener) as output,
    ):
        process = subprocess.Popen(
            # -P: no module is taken from the working directory, which is that of the server.
            [sys.executable, "-P", "-m", "arroyo_console.runner", str(folder), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=log,
            env={**kept, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
            umask=0o077,
        )
    # It is not this object's to wait for, nor to complain about: it may outlive the server.
    process.returncode = 0
    return process.pid


def _write(path: Path, text: str) -> None:
    with open(path, "w", encoding="utf-8", opener=private_opener) as file:
        file.write(text)
