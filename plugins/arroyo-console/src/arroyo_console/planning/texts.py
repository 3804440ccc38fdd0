"""Has texts looked at in processes of their own: nothing of a text is planned or run in the server."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from arroyo_devtools.lint.secrets import describe_secret, hide_secrets

from arroyo_console.checkpoint_urls import with_checkpoint_url
from arroyo_console.errors import ConsoleError, TooManyError
from arroyo_console.supervision.launching import TOKEN_VARIABLES
from arroyo_console.values import (
    Column,
    Detail,
    Finding,
    Graph,
    GraphChain,
    GraphEdge,
    GraphNode,
    Language,
    NodePreview,
    Preview,
    Problem,
)
from arroyo_core.api.limits import FILE_BYTES
from arroyo_core.cli.jobs import job_of
from arroyo_core.errors import ArroyoError, ConfigError
from arroyo_core.local_folders import make_private_folder, private_opener

#: Processes that look at texts at a time; so many others wait, and for so long: each of them holds a thread.
PROCESSES = 2
WAITING = 8
PATIENCE_S = 60.0
#: After which such a process is ended, beside what it is asked to run.
PLANNING_S = 120.0
_REMEMBERED = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSettings:
    """What texts may do while they are looked at."""

    #: Whether functions that texts bring may run, and their sources may be asked.
    allows_code: bool = False
    #: Variables of the environment that texts may read, and folders whose files they may.
    variables: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()


@dataclass(slots=True)
class Texts:
    """Plans, checks and previews texts; `scratch` is where they are while that is done."""

    scratch: Path
    settings: TextSettings
    environment: Mapping[str, str]
    _slots: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(PROCESSES))
    _queue: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(PROCESSES + WAITING))
    _known: OrderedDict[str, Graph] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def graph(self, text: str, language: Language, *, parallelism: int | None = None) -> Graph:
        """The plan of a text, or its problems; what was asked lately is remembered."""
        check_size(text)
        key = hashlib.sha256(f"{language}:{parallelism}:{text}".encode("utf-8", "surrogatepass")).hexdigest()
        with self._lock:
            known = self._known.get(key)
        # Files that a text includes, and tables that it asks, may change: mistakes are looked for again.
        if known is not None and not known.problems:
            return known
        options = [] if parallelism is None else ["--parallelism", str(parallelism)]
        graph = graph_of(self._run("inspect", text, language, options, seconds=PLANNING_S))
        graph = replace(graph, problems=(*graph.problems, *_secrets_in(text, graph.problems)))
        with self._lock:
            self._known[key] = graph
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return graph

    def preview(self, text: str, language: Language, *, node: str | None, rows: int, seconds: float) -> Preview:
        check_size(text)
        options = ["--rows", str(rows), "--seconds", str(max(1, round(seconds)))]
        if node is not None:
            options += [f"--node={node}"]
        document = self._run("preview", text, language, options, seconds=PLANNING_S + 2 * seconds)
        return Preview(
            nodes=tuple(_node_preview(each) for each in document.get("nodes", ())),
            problems=tuple(problem_of(each) for each in document.get("problems", ())),
            error=document.get("error", ""),
            is_cut=bool(document.get("is_cut", False)),
            duration_s=round(document.get("duration_s", 0.0), 3),
        )

    def name_of(self, text: str, language: Language) -> str:
        """The name of a pipeline that could not be planned in untrusted mode; raises `ConsoleError` for none."""
        with self.written(text, language) as path:
            try:
                return job_of(with_url(path, text, language)).job
            except (ArroyoError, ValueError, yaml.YAMLError) as error:
                said = str(error).replace(str(path), "the text")
                raise ConsoleError(f"the name of the pipeline cannot be told: {said}", where="text") from error

    def doctor(self) -> tuple[Finding, ...]:
        """What `arroyo doctor` finds on this machine, without starting Spark."""
        with self._slot():
            document = self._json(["doctor", "--no-spark", "--format", "json"], seconds=PLANNING_S)
        return tuple(Finding(**finding) for finding in document["findings"])

    def _run(
        self, command: str, text: str, language: Language, options: Sequence[str], *, seconds: float
    ) -> dict[str, Any]:
        """The JSON document that a command prints about a text; raises `ConsoleError` where it prints none."""
        with self._slot(), self.written(text, language) as path:
            arguments = [command, str(path), "--format", "json", *options, *self._mode()]
            return self._json(arguments, seconds=seconds, path=str(path))

    def _json(self, arguments: Sequence[str], *, seconds: float, path: str = "pipeline.yaml") -> dict[str, Any]:
        kept = {name: value for name, value in self.environment.items() if name not in TOKEN_VARIABLES}
        command = [sys.executable, "-P", "-m", "arroyo_console.planning.command", *arguments]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, env=kept, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise ConsoleError(f"it was not done within {seconds:g} s") from error
        try:
            document = json.loads(done.stdout)
        except ValueError as error:
            said = hide_secrets(done.stderr.decode(errors="replace")).strip().splitlines()
            reason = next((line for line in reversed(said) if line.strip()), f"exit code {done.returncode}")
            raise ConsoleError(f"it could not be done: {reason.replace(path, 'the text')}") from error
        # Where it was ended from outside, untrusted mode prints a list of one mistake.
        found = {"problems": document} if isinstance(document, list) else document
        for problem in found.get("problems", ()):
            problem["message"] = hide_secrets(str(problem["message"]).replace(path, "the text"))
        return found if isinstance(found, dict) else {}

    def _mode(self) -> list[str]:
        roots = [f"--root={root}" for root in self.settings.roots]
        if self.settings.allows_code:
            return roots
        return ["--untrusted", *roots, *(f"--allow-env={name}" for name in self.settings.variables)]

    @contextmanager
    def _slot(self) -> Iterator[None]:
        busy = TooManyError(f"{PROCESSES} texts are looked at already, and others wait: ask again later")
        if not self._queue.acquire(blocking=False):
            raise busy
        try:
            if not self._slots.acquire(timeout=PATIENCE_S):
                raise busy
            try:
                yield
            finally:
                self._slots.release()
        finally:
            self._queue.release()

    @contextmanager
    def written(self, text: str, language: Language) -> Iterator[Path]:
        """The text in a file, as long as it is looked at."""
        make_private_folder(self.scratch)
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            path = Path(folder) / f"pipeline.{language}"
            with open(path, "w", encoding="utf-8", errors="surrogatepass", opener=private_opener) as file:
                file.write(text)
            yield path


def with_url(path: Path, text: str, language: Language) -> Path:
    """Give the text of a file a checkpoint URL, if it has none: `job_of` asks for one."""
    try:
        job_of(path)
    except ConfigError:
        path.write_text(with_checkpoint_url(text, language, "file:///nowhere"), encoding="utf-8")
    return path


def check_size(text: str) -> None:
    """Raise `ConsoleError` for a text that is too long to be a pipeline."""
    problem = FILE_BYTES.problem(len(text.encode("utf-8", "surrogatepass")))
    if problem is not None:
        raise ConsoleError(problem, where="text")


def _secrets_in(text: str, known: Sequence[Problem]) -> Iterator[Problem]:
    """What has the form of a secret, also in a text that could not be planned; one for each line that has none yet."""
    lines = {problem.line for problem in known if problem.line is not None}
    for number, line in enumerate(text.splitlines(), start=1):
        what = describe_secret(line)
        if what is not None and number not in lines:
            message = f"{what} is written in clear: read it from the environment: ${{NAME}}"
            yield Problem(message=message, line=number, column=1)


def problem_of(document: Mapping[str, Any]) -> Problem:
    value = document.get("value")
    return Problem(
        message=document["message"],
        line=document.get("line"),
        column=document.get("column"),
        value=None if value is None else str(value),
        suggestion=document.get("suggestion"),
        allowed=tuple(map(str, document.get("allowed", ()))),
        is_refusal=bool(document.get("is_refusal", False)),
    )


def graph_of(document: Mapping[str, Any]) -> Graph:
    """From what `arroyo inspect` prints; secrets that are written in clear are problems here."""
    problems = tuple(problem_of(each) for each in (*document.get("problems", ()), *document.get("secrets", ())))
    plan = document.get("plan")
    if plan is None:
        return Graph(problems=problems)
    places = {node: (chain["id"], chain["wave"]) for chain in plan["chains"] for node in chain["nodes"]}
    targets = {edge["target"] for edge in plan["edges"]}
    return Graph(
        name=plan["name"],
        nodes=tuple(
            GraphNode(
                id=node["id"],
                operator=node["operator"],
                parallelism=node["parallelism"],
                chain=places[node["id"]][0],
                wave=places[node["id"]][1],
                is_source=node["id"] not in targets,
                is_sink=node["is_sink"],
                details=tuple(Detail(label=each["label"], text=hide_secrets(each["text"])) for each in node["details"]),
                columns=tuple(_column(each) for each in node["output"]["columns"]),
                event_time=node["output"]["event_time"],
                guarantee=node["guarantee"]["level"],
                guarantee_reason=node["guarantee"]["reason"],
            )
            for node in plan["nodes"]
        ),
        edges=_edges(plan),
        chains=_chains(plan),
        problems=problems,
    )


def graph_of_run(plan: Mapping[str, Any]) -> Graph:
    """From the journal of a run: the same without settings and columns, as it runs now."""
    places = {node: (chain["id"], chain["wave"]) for chain in plan["chains"] for node in chain["nodes"]}
    nodes = [
        GraphNode(**node, chain=places[node["id"]][0], wave=places[node["id"]][1])  # no setting is in it
        for node in plan["nodes"]
    ]
    return Graph(name=plan["name"], nodes=tuple(nodes), edges=_edges(plan), chains=_chains(plan))


def _edges(plan: Mapping[str, Any]) -> tuple[GraphEdge, ...]:
    names = ("source", "target", "routing", "output")
    return tuple(GraphEdge(**{name: edge[name] for name in names}, keys=tuple(edge["keys"])) for edge in plan["edges"])


def _chains(plan: Mapping[str, Any]) -> tuple[GraphChain, ...]:
    return tuple(GraphChain(**{**chain, "nodes": tuple(chain["nodes"])}) for chain in plan["chains"])


def _column(document: Mapping[str, Any]) -> Column:
    nullable = document.get("nullable", document.get("is_nullable", True))
    return Column(name=document["name"], type=document["type"], is_nullable=nullable)


def _node_preview(document: Mapping[str, Any]) -> NodePreview:
    columns = tuple(_column(each) for each in document["columns"])
    return NodePreview(node=document["node"], columns=columns, rows=tuple(document["rows"]))
