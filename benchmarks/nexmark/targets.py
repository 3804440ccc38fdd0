"""What the project wants to reach, and whether the measurements do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from .engines import ENGINES, OURS, OURS_ON_CSV
from .queries import AVERAGED, COMPARED
from .results import Results

Seconds = Mapping[str, Mapping[str, Sequence[float]]]


@dataclass(frozen=True, slots=True)
class Target:
    title: str
    wanted: str
    found: str
    #: None where it was not measured.
    is_met: bool | None


def targets(results: Results, seconds: Seconds) -> list[Target]:
    """`seconds`: by case of `benchmarks.epochs`, those of both sides."""
    return [
        _mean(results, OURS, "structured_streaming", 6.0),
        _mean(results, OURS, "flink", 10.0),
        _mean(results, OURS_ON_CSV, "flink", 10.0),
        _mean(results, OURS, "bytewax", 30.0),
        _each(results, 1.5),
        _mean(results, OURS, "polars", 0.5),
        _epochs(seconds, "small", "a stateful epoch of 1,000 rows, over the micro-batch of Structured Streaming", 0.7),
        _epochs(seconds, "large", "an epoch with 10 M keys of state, over one with 100 k, same change", 1.2),
        _memory(results, 0.5),
        _start(seconds, 1.0),
    ]


def _mean(results: Results, ours: str, other: str, wanted: float) -> Target:
    title = f"geometric mean of {', '.join(AVERAGED)} against {ENGINES[other].title}"
    if ENGINES[ours].is_text or ENGINES[other].is_text:
        title += ", both on CSV" if ENGINES[ours].is_text else ", which reads CSV and no Parquet"
    found = results.geometric_mean(ours, other, AVERAGED)
    if found is None:
        return Target(title, f">= {wanted:g} times", "not measured", None)
    ratio, count = found
    of = "" if count == len(AVERAGED) else f" (of {count} queries)"
    return Target(title, f">= {wanted:g} times", f"{ratio:.2f} times{of}", ratio >= wanted)


def best_peer(results: Results, query: str) -> tuple[str, float] | None:
    """The peer that is hardest to beat on files of the same format, and how many times its events/s ours has."""
    ratios = []
    for engine in ENGINES.values():
        if engine.kind == "peer":
            ours = OURS_ON_CSV if engine.name == "flink" else OURS
            ratio = results.ratio(ours, engine.name, query)
            if ratio is not None:
                ratios.append((engine.name, ratio))
    return min(ratios, key=lambda item: item[1], default=None)


def _each(results: Results, wanted: float) -> Target:
    found = {query: best for query in COMPARED if (best := best_peer(results, query)) is not None}
    title = "each single query against the best peer"
    if not found:
        return Target(title, f">= {wanted:g} times", "not measured", None)
    query, (peer, least) = min(found.items(), key=lambda item: item[1][1])
    text = f"least {least:.2f} times, {query} against {ENGINES[peer].title}"
    return Target(title, f">= {wanted:g} times", text, least >= wanted)


def _memory(results: Results, wanted: float) -> Target:
    ratios = {
        query: ratio
        for query in COMPARED
        if (ratio := results.memory_ratio(OURS, "structured_streaming", query)) is not None
    }
    title = "peak memory over that of Structured Streaming, same query"
    if not ratios:
        return Target(title, f"<= {wanted:g}", "not measured", None)
    query = max(ratios, key=lambda name: ratios[name])
    text = f"most {ratios[query]:.2f}, {query}; median {median(ratios.values()):.2f}"
    return Target(title, f"<= {wanted:g}", text, ratios[query] <= wanted)


def _epochs(seconds: Seconds, case: str, title: str, wanted: float) -> Target:
    if case not in seconds:
        return Target(title, f"<= {wanted:g}", "not measured", None)
    ours, *_, other = (median(values) for values in seconds[case].values())
    return Target(title, f"<= {wanted:g}", f"{ours / other:.2f}", ours / other <= wanted)


def _start(seconds: Seconds, wanted_s: float) -> Target:
    title = "`arroyo run` before its first row, over a bare SparkSession start"
    if "startup" not in seconds:
        return Target(title, f"<= {wanted_s:.1f} s", "not measured", None)
    ours, *_, other = (median(values) for values in seconds["startup"].values())
    return Target(title, f"<= {wanted_s:.1f} s", f"{ours - other:.2f} s", ours - other <= wanted_s)
