"""What a job writes down for whoever supervises it: its graph, a line for each epoch, and its errors.

    {folder}/graph.json     the plan, as it runs now
    {folder}/started.json   since when the job runs: it has claimed its state
    {folder}/latest.json    the last committed epoch, by node and subtask
    {folder}/epochs.jsonl   a line for each committed epoch; epochs.1.jsonl holds those before
    {folder}/errors.jsonl   a line for each failure, with its traceback

Files are replaced as a whole, or lines are added to them; they are for this user alone. `arroyo run --journal FOLDER`
writes them. A journal that cannot be written is a warning, and the job goes on.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from arroyo_devtools.lint.secrets import hide_secrets

from arroyo_core.api.urls import absolute_url, redact_url
from arroyo_core.cli.observers import Observer
from arroyo_core.errors import OperatorError
from arroyo_core.local_folders import make_private_folder, private_opener
from arroyo_core.pipeline import Plan
from arroyo_core.plugin import PluginSet, installed_plugins
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_core.runtime.secrets import NodeSecrets

GRAPH, STARTED, LATEST = "graph.json", "started.json", "latest.json"
EPOCHS, EPOCHS_BEFORE, ERRORS = "epochs.jsonl", "epochs.1.jsonl", "errors.jsonl"
#: Lines of epochs in a file before it becomes the one before.
MAX_LINES = 5_000
#: The newest epoch by subtask is written no more often than that.
LATEST_EVERY_S = 0.5
MAX_TRACEBACK = 20_000

logger = logging.getLogger(__name__)


class Journal(Observer):
    """The journal of the one job of a command."""

    def __init__(self, folder: Path, plan: Plan, plugins: PluginSet | None = None) -> None:
        self._folder = folder
        self._plan = plan
        self._plugins = plugins
        self._lines = 0
        self._written_s = 0.0
        self._restarts = 0
        self._shape: tuple[int, ...] = ()
        self._has_warned = False

    def __enter__(self) -> Self:
        make_private_folder(self._folder)
        self._write_graph(self._plan)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def on_start(self, job: JobResult) -> None:
        self._write_graph(job.plan or self._plan)
        self._replace(STARTED, {"at_us": time.time_ns() // 1000, "resumed_from": job.resumed_from})

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        now_us = time.time_ns() // 1000
        if job.plan is not None:
            self._write_graph(job.plan)
        if job.restarts > self._restarts:
            self._restarts = job.restarts
            self._add_error(job.last_error, epoch=result.epoch, is_recovered=True)
        facts = {"restarts": job.restarts, "parallelism": job.parallelism, "generation": job.generation}
        line = {"at_us": now_us, **result.summary(), **facts, "slowest": _slowest(result)}
        self._add_epoch(line)
        # The first of a burst at once, the others not all: the file may be large.
        if time.monotonic() - self._written_s >= LATEST_EVERY_S or result.is_final:
            self._written_s = time.monotonic()
            self._replace(LATEST, {**line, "operators": _operators(result), "subtasks": _subtasks(result)})

    def on_failure(self, job_id: str, error: BaseException) -> None:
        details: dict[str, Any] = {}
        trace = "".join(traceback.format_exception(error))
        if isinstance(error, OperatorError):
            trace = f"{trace}\n{error.traceback}" if error.traceback else trace
            details = {
                name: getattr(error, name, None) for name in ("operator_id", "subtask", "epoch") if hasattr(error, name)
            }
        self._add_error(
            str(error),
            trace=trace[-MAX_TRACEBACK:],
            node=details.get("operator_id"),
            subtask=details.get("subtask"),
            epoch=details.get("epoch"),
        )

    def _write_graph(self, plan: Plan) -> None:
        shape = tuple(node.parallelism for node in plan.nodes.values())
        if shape != self._shape:
            self._shape = shape
            letters = dead_letter_urls(plan, self._plugins or installed_plugins())
            self._replace(GRAPH, {**plan_document(plan), "dead_letters": letters})

    def _add_epoch(self, line: Mapping[str, Any]) -> None:
        if self._lines >= MAX_LINES:
            self._lines = 0
            self._guarded(lambda: (self._folder / EPOCHS).replace(self._folder / EPOCHS_BEFORE))
        self._lines += 1
        self._add(EPOCHS, line)

    def _add_error(self, message: str, *, trace: str = "", **fields: Any) -> None:
        line = {"at_us": time.time_ns() // 1000, "message": message, "traceback": trace, **fields}
        texts = {name: self._redact(value) if isinstance(value, str) else value for name, value in line.items()}
        self._add(ERRORS, texts)

    def _redact(self, text: str) -> str:
        plugins = self._plugins or installed_plugins()
        for node in self._plan.nodes.values():
            text = NodeSecrets(node, plugins).redact(text)
        return hide_secrets(text)

    def _add(self, name: str, line: Mapping[str, Any]) -> None:
        def add() -> None:
            with open(self._folder / name, "ab", opener=private_opener) as file:
                file.write(msgspec.json.encode(line) + b"\n")

        self._guarded(add)

    def _replace(self, name: str, document: Mapping[str, Any]) -> None:
        def replace() -> None:
            beside = self._folder / f".{name}.new"
            with open(beside, "wb", opener=private_opener) as file:
                file.write(msgspec.json.encode(document))
            beside.replace(self._folder / name)

        self._guarded(replace)

    def _guarded(self, write: Any) -> None:
        try:
            write()
        except OSError as error:
            if not self._has_warned:
                logger.warning("the journal cannot be written: %s", error)
            self._has_warned = True


def plan_document(plan: Plan) -> dict[str, Any]:
    """The shape of a plan, without its settings: these may have secrets."""
    targets = {edge.target for edge in plan.edges}
    sources = {edge.source for edge in plan.edges}
    return {
        "name": plan.job_id,
        "nodes": [
            {
                "id": node.id,
                "operator": node.operator,
                "parallelism": node.parallelism,
                "is_source": node.id not in targets,
                "is_sink": node.id not in sources,
            }
            for node in plan.nodes.values()
        ],
        "edges": [
            {
                "source": edge.source,
                "target": edge.target,
                "routing": edge.routing.value,
                "keys": list(edge.keys),
                "output": edge.output,
            }
            for edge in plan.edges
        ],
        "chains": [
            {"id": chain.id, "nodes": list(chain.nodes), "parallelism": chain.parallelism, "wave": chain.wave}
            for chain in plan.chains
        ],
    }


def dead_letter_urls(plan: Plan, plugins: PluginSet) -> list[str]:
    """Where rows that fail are written to: by sinks of the output `errors`, and by sources with a `dead_letter`."""
    sinks = {edge.target for edge in plan.edges if edge.output == "errors"}
    found = []
    for node in plan.nodes.values():
        config: Any = plugins.constructor(node.operator).config_type.FromString(node.config)
        for name in ("path" if node.id in sinks else "", "dead_letter"):
            url = getattr(config, name, "") if name in config.DESCRIPTOR.fields_by_name else ""
            if isinstance(url, str) and url:
                found.append(redact_url(absolute_url(url)))
    return list(dict.fromkeys(found))


def _slowest(result: EpochResult) -> list[Any] | None:
    name = result.slowest()
    return None if name is None else [name, round(result.busy_shares()[name], 4)]


def _operators(result: EpochResult) -> dict[str, dict[str, Any]]:
    return {
        name: {
            **numbers,
            "warnings": list(result.operators[name].warnings.values()),
            "counters": result.operators[name].counters,
        }
        for name, numbers in result.operator_summaries().items()
    }


def _subtasks(result: EpochResult) -> dict[str, list[Sequence[int]]]:
    """By node: subtask, rows in and out, bytes in and out, nanoseconds busy, and backlog of each."""
    found: dict[str, list[Sequence[int]]] = {}
    for (node, subtask), each in sorted(result.subtasks.items()):
        numbers = (each.rows_received, each.rows_sent, each.bytes_received, each.bytes_sent, each.busy_ns, each.backlog)
        found.setdefault(node, []).append((subtask, *numbers))
    return found
