"""Dead letters of a pipeline, through `arroyo dlq`: it knows all that there is to know about them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from arroyo_devtools.lint.secrets import hide_secrets
from arroyo_dlq.claims import read_replays
from arroyo_dlq.command import letters_below, summarize
from arroyo_dlq.letters import find_letters

from arroyo_console.errors import ConsoleError
from arroyo_console.supervision.launching import TOKEN_VARIABLES
from arroyo_console.values import Letter, LetterSummary
from arroyo_core.api.urls import redact_url
from arroyo_core.state import get_storage_provider

REPLAY_S = 600.0


def summaries(urls: Sequence[str]) -> tuple[LetterSummary, ...]:
    """The letters below each of the URLs, by node."""
    return tuple(found for url in urls for found in _summaries(url))


def _summaries(url: str) -> Iterator[LetterSummary]:
    storage = get_storage_provider(url)
    for each in summarize(find_letters(storage).files, read_replays(storage)):
        yield LetterSummary(
            url=redact_url(url),
            pipeline=each.pipeline,
            node=each.node,
            operator=each.operator,
            letters=each.letters,
            open=each.open,
            replayed=each.replayed,
            first=each.first,
            last=each.last,
            newest_error=hide_secrets(each.error),
        )


def letters(
    urls: Sequence[str], *, node: str | None, error: str | None, limit: int, is_all: bool
) -> tuple[Letter, ...]:
    found: list[Letter] = []
    for url in urls:
        for each in letters_below(get_storage_provider(url), node=node, error=error, is_all=is_all):
            if len(found) == limit:
                return tuple(found)
            found.append(_letter(each))
    return tuple(found)


def _letter(found: Mapping[str, Any]) -> Letter:
    return Letter(
        state=str(found["state"]),
        node=str(found["node"] or "?"),
        time=str(found["time"] or ""),
        error=hide_secrets(str(found["error"] or "")),
        epoch=found["epoch"],
        subtask=found["subtask"],
        position=str(found["position"] or ""),
        row=found["row"],
    )


def replay(
    url: str,
    path: Path,
    *,
    job: str,
    node: str | None,
    error: str | None,
    limit: int | None,
    is_dry_run: bool,
    environment: Mapping[str, str],
) -> tuple[int, str, str]:
    """Run `arroyo dlq replay` in a process; its exit code, what it printed, and what it said about that."""
    arguments = [sys.executable, "-P", "-m", "arroyo_console.planning.command", "dlq", "replay", "--in-process"]
    arguments += ["--pipeline", str(path), f"--job={job}"]
    for name, value in (("node", node), ("error", error), ("limit", limit)):
        arguments += [] if value is None else [f"--{name}={value}"]
    arguments += ["--dry-run"] if is_dry_run else []
    kept = {name: value for name, value in environment.items() if name not in TOKEN_VARIABLES}
    try:
        done = subprocess.run(
            [*arguments, "--", url],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=REPLAY_S,
            env=kept,
            check=False,
        )
    except subprocess.TimeoutExpired as failure:
        raise ConsoleError(f"the replay did not end within {REPLAY_S:g} s; the next one goes on with it") from failure
    out, said = (hide_secrets(data.decode(errors="replace")) for data in (done.stdout, done.stderr))
    return done.returncode, out, said.replace(str(path), "the text")
