"""`arroyo --server URL ...`: commands that are carried out by a server, from another machine."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from arroyo_core.api.urls import redact_url
from arroyo_core.cli.commands import Command, CommandGroup, Commands
from arroyo_core.cli.exits import FAILURE, OK
from arroyo_core.cli.options import JSON, add_format
from arroyo_core.cli.tables import print_rows
from arroyo_core.errors import ConfigError, InvalidPipelineError, Location, PipelineError, SetupError

#: How often `logs --follow` asks.
LOOK_S = 1.0
#: Options of `arroyo run` that the server decides about.
_OF_SERVER = {
    "master": "--master",
    "conf": "--conf",
    "parameters": "--set",
    "in_process": "--in-process",
    "execution": "--execution",
    "from_epoch": "--from-epoch",
    "fork_from": "--fork-from",
    "insecure_udfs": "--insecure-udfs",
    "roots": "--root",
}


def add_commands(commands: Commands) -> None:
    """Add `--server`, `ls` and `logs`."""
    commands.root.add_argument(
        "--server", metavar="URL", help="have `run`, `stop`, `rescale`, `ls` and `logs` done by a server (arroyo serve)"
    )
    ls = commands.add_parser(
        "ls",
        group=CommandGroup.JOBS,
        runs_pipelines=False,
        help="list the pipelines of a server: arroyo --server URL ls",
    )
    add_format(ls)
    ls.set_defaults(command=_needs_server)
    logs = commands.add_parser(
        "logs",
        group=CommandGroup.JOBS,
        runs_pipelines=False,
        help="show the log of a job of a server: arroyo --server URL logs NAME",
    )
    logs.add_argument("url", metavar="NAME", help="the name of a pipeline, or its id")
    logs.add_argument("--lines", type=int, default=100, metavar="N", help="default: %(default)s")
    logs.add_argument("--follow", "-f", action="store_true", help="go on with what comes, until the job has ended")
    logs.set_defaults(command=_needs_server)
    commands.root.redirections.append(_redirection)


def _needs_server(args: argparse.Namespace) -> int:
    raise SetupError("this asks a server: arroyo --server URL ...; `arroyo ps` lists jobs by what they have stored")


def _redirection(args: argparse.Namespace) -> Command | None:
    if getattr(args, "server", None) is None:
        return None
    known: Mapping[str, Callable[[Server, argparse.Namespace], int]] = {
        "run": _run,
        "stop": _stop,
        "rescale": _rescale,
        "ls": _ls,
        "ps": _ls,
        "logs": _logs,
    }
    ask = known.get(args.command_name)
    if ask is None:
        raise SystemExit(f"arroyo: --server goes with {', '.join(known)}, not with {args.command_name}")

    def remote(args: argparse.Namespace) -> int:
        with Server(args.server) as server:
            return ask(server, args)

    return remote


class Server:
    """The API of a server; its errors are raised as those of commands."""

    def __init__(self, url: str) -> None:
        import httpx

        token = os.environ.get("ARROYO_CONSOLE_TOKEN") or os.environ.get("ARROYO_CONSOLE_READ_TOKEN")
        headers = {"authorization": f"Bearer {token}"} if token else {}
        if not url.startswith(("http://", "https://")):
            raise SetupError(f"--server {url!r:.200} is not a URL: http://HOST:PORT")
        #: Without a password.
        self.shown_url = redact_url(url.rstrip("/"))
        self._client = httpx.Client(base_url=url.rstrip("/"), headers=headers, timeout=180.0)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def ask(self, method: str, path: str, **options: Any) -> Any:
        """The document of an answer; raises `ConfigError` with what the server refuses."""
        import httpx

        try:
            answer = self._client.request(method, path, **options)
        except httpx.HTTPError as error:
            raise SetupError(f"{self.shown_url} does not answer: {error}") from error
        if answer.is_success:
            return answer.json() if answer.content else None
        try:
            problem = answer.json()
        except ValueError:
            problem = {}
        raise RemoteError(answer.status_code, problem)

    def pipeline(self, name: str) -> Any:
        """By its id, or by its whole name."""
        if name.startswith("pl_"):
            return self.ask("GET", f"/v1/pipelines/{name}")
        after: str | None = None
        while True:
            query = {"search": name, "limit": 500, **({"after": after} if after else {})}
            page = self.ask("GET", "/v1/pipelines", params=query)
            for found in page["items"]:
                if found["name"] == name:
                    return found
            after = page["next"]
            if after is None:
                raise ConfigError(f"the server has no pipeline {name!r}: `arroyo --server URL ls` lists them")


class RemoteError(ConfigError):
    """What a server refuses."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(
            f"the server refuses: {problem.get('detail', f'status {status}')}", allowed=problem.get("allowed", ())
        )
        self.status = status
        self.where = problem.get("where")
        self.problems: list[Mapping[str, Any]] = list(problem.get("problems", ()))


def _run(server: Server, args: argparse.Namespace) -> int:
    given = [option for name, option in _OF_SERVER.items() if getattr(args, name, None)]
    if given:
        raise SetupError(f"with --server the server decides about {', '.join(given)}")
    if len(args.files) != 1 or Path(args.files[0]).is_dir():
        raise SetupError("with --server one pipeline is run: name one file")
    (file,) = args.files
    text = getattr(file, "text", None)
    if text is None:
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SetupError(f"cannot read {file}: {error}") from error
    language = "sql" if str(file).lower().endswith(".sql") else "yaml"
    body = {"query": text, "language": language, "parallelism": args.parallelism}
    try:
        made = _create_or_change(server, body)
    except RemoteError as error:
        if not error.problems:
            raise
        raise InvalidPipelineError([_mistake(str(file), each) for each in error.problems]) from error
    if args.format == JSON:
        print(json.dumps(made, indent=2))
    else:
        look = f"arroyo --server {server.shown_url} logs {made['name']}"
        print(f"{made['name']}: {made['job']['state']} as {made['id']}; look: {look}")
    return OK


def _create_or_change(server: Server, body: dict[str, Any]) -> Any:
    try:
        return server.ask("POST", "/v1/pipelines", json=body)
    except RemoteError as error:
        if error.status != 409 or error.where != "name":
            raise
    graph = server.ask("POST", "/v1/pipelines/graph", json={name: body[name] for name in ("query", "language")})
    found = server.pipeline(graph["name"])
    return server.ask("PATCH", f"/v1/pipelines/{found['id']}", json={**body, "stop": "start"})


def _mistake(file: str, problem: Mapping[str, Any]) -> PipelineError:
    at = None
    if problem.get("line") is not None:
        at = Location(file, problem["line"], problem.get("column") or 1)
    return PipelineError(
        problem["message"], at=at, allowed=problem.get("allowed", ()), suggestion=problem.get("suggestion")
    )


def _stop(server: Server, args: argparse.Namespace) -> int:
    found = server.pipeline(args.job or args.url)
    changed = server.ask("PATCH", f"/v1/pipelines/{found['id']}", json={"stop": args.mode})
    return _say(changed, args)


def _rescale(server: Server, args: argparse.Namespace) -> int:
    found = server.pipeline(args.job or args.url)
    changed = server.ask("PATCH", f"/v1/pipelines/{found['id']}", json={"parallelism": args.parallelism})
    return _say(changed, args)


def _say(pipeline: Mapping[str, Any], args: argparse.Namespace) -> int:
    print(
        json.dumps(pipeline["job"], indent=2)
        if args.format == JSON
        else f"{pipeline['name']}: {pipeline['job']['state']}"
    )
    return OK


def _ls(server: Server, args: argparse.Namespace) -> int:
    found: list[Any] = []
    after: str | None = None
    while True:
        page = server.ask("GET", "/v1/jobs", params={"limit": 500, **({"after": after} if after else {})})
        found += page["items"]
        after = page["next"]
        if after is None:
            break
    if args.format == JSON:
        print(json.dumps(found, indent=2))
        return OK
    columns = ["name", "state", "epoch", "rows/s", "restarts", "id"]
    rows = [
        [_shown(job[key]) for key in ("name", "state", "epoch", "rows_per_s", "restarts", "pipeline_id")]
        for job in found
    ]
    print_rows(columns, rows, right=("epoch", "rows/s", "restarts"))
    return OK


def _logs(server: Server, args: argparse.Namespace) -> int:
    job_id = server.pipeline(args.url)["job"]["id"]
    path = f"/v1/jobs/{job_id}/log"
    found = server.ask("GET", path, params={"lines": args.lines})
    while True:
        for line in found["lines"]:
            print(line, flush=True)
        if not args.follow:
            return OK
        state = server.ask("GET", f"/v1/jobs/{job_id}")["summary"]["state"]
        before = found
        found = server.ask("GET", path, params={"lines": 5_000, "offset": before["offset"]})
        if found["run"] != before["run"]:
            found = server.ask("GET", path, params={"lines": 5_000})
        if not found["lines"]:
            if state in ("stopped", "finished", "failed", "created"):
                return FAILURE if state == "failed" else OK
            time.sleep(LOOK_S)


def _shown(value: object) -> str:
    return "-" if value is None else f"{value:,.0f}" if isinstance(value, float) else str(value)
