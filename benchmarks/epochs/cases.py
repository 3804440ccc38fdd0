"""The cases about epochs, what each is compared with, and the sections that they make."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..modules import ROOT

RESULTS = ROOT / "build" / "bench" / "epochs"


@dataclass(frozen=True, slots=True)
class Case:
    """A module with `measure(folder)`, which gives seconds by name: first ours, last what it is compared with."""

    module: str
    title: str
    #: The ratio of the first and the last median is meant to be at most this; None for a comparison without a bound.
    bound: float | None = None
    #: Whether the medians are of different things, so that no ratio is shown.
    is_list: bool = False


CASES = {
    case.module: case
    for case in (
        Case("bare", "An epoch of two waves and 10 rows, beside a bare Spark job of the same shape", 1.3),
        Case("empty", "An epoch without rows, beside a bare Spark job of the same shape"),
        Case(
            "small",
            "A stateful epoch of 1,000 rows, beside the same micro-batch of Structured Streaming (RocksDB)",
            0.7,
        ),
        Case(
            "large", "An epoch that changes 1,000 keys, with 10 million, 1 million and 100 thousand keys of state", 1.2
        ),
        Case("overhead", "The same 40 million events with a checkpoint every 2 s, and in one epoch", 1.1),
        # Four times as many channels: linear in them, with something for what is linear in the subtasks.
        Case(
            "accepting", "Accepting an epoch of three shuffles: 300 subtasks, which are to take 100 ms, beside 150", 4.4
        ),
        Case("cores", "q5 on 10 million generated events, on two cores and on one"),
        Case(
            "latency",
            "From an event to its committed row, at 10 thousand rows/s, through a shuffle and into Parquet files",
            is_list=True,
        ),
        Case("warm", "q5 on 10 thousand events: the first run in a session, beside later ones in the same session"),
        Case("startup", "`arroyo run` to its first row, beside a bare start of a SparkSession"),
        Case("recovery", "Recovery of a killed driver, beside a plain start of Spark"),
        Case("live_empty", "In live workers: an epoch without rows, beside a bare Spark job", 0.1),
        Case(
            "live_small",
            "In live workers: a stateful epoch of 1,000 rows, beside the same micro-batch of Structured Streaming",
            0.12,
        ),
        Case(
            "live_latency",
            "In live workers: from an event to its committed row, at 10 thousand rows/s, into Parquet files",
            is_list=True,
        ),
        Case(
            "live_shown",
            "In live workers: from an event to its line of `std.stdout`, at 10 thousand rows/s",
            is_list=True,
        ),
        Case("live_cores", "In live workers: q5 on 10 million generated events, on two cores and on one", 0.59),
        Case("live_restart", "In live workers: after `kill -9` of a worker", is_list=True),
        Case("live_rescale", "In live workers: from one subtask to two while rows flow", is_list=True),
    )
}


def load_seconds() -> dict[str, dict[str, list[float]]]:
    """What has been measured so far, by case."""
    return {name: json.loads(path.read_text()) for name in CASES if (path := RESULTS / f"{name}.json").exists()}


def sections() -> str:
    """A section for each case that has been measured."""
    found = load_seconds()
    if not found:
        return ""
    return "\n\n".join([HEADING, *(section(CASES[name], seconds) for name, seconds in found.items())])


HEADING = """## What an epoch costs

Each case is one process, and its sides run in turn. Epochs are timed from one commit to the next, since an epoch is
published while the next one runs; the first ones, which start workers and compile code, are left out."""


def section(case: Case, seconds: Mapping[str, Sequence[float]]) -> str:
    rows = [f"### {case.title}", "", "| | Median | Fastest | Slowest | Runs |", "|---|---:|---:|---:|---:|"]
    for name, values in seconds.items():
        middle, least, most = statistics.median(values), min(values), max(values)
        rows.append(f"| {name} | {middle * 1000:,.0f} ms | {least * 1000:,.0f} | {most * 1000:,.0f} | {len(values)} |")
    if case.is_list:
        return "\n".join(rows)
    ours, *_, other = (statistics.median(values) for values in seconds.values())
    bound = "" if case.bound is None else f"; the bound is {case.bound}: {_verdict(ours / other, case.bound)}"
    return "\n".join([*rows, "", f"Ratio of the first to the last median: {ours / other:.2f}{bound}."])


def _verdict(ratio: float, bound: float) -> str:
    return "met" if ratio <= bound else "NOT met"
