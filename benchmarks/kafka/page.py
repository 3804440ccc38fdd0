"""The results as Markdown: for the screen and for `docs/benchmarks-kafka.md`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..nexmark.machine import about
from ..nexmark.results import Results
from .cases import BARE, BARE_TWO, CASES, DECODE, ENGINES, LATENCY_INTERVAL, OURS, PARTITIONS, PEER, Case
from .latency import RATE, WARM_UP_S, Latency

#: How many times the messages/s of each ours is to have.
WANTED = {PEER: 5.0, BARE: 0.5}
MEASURED = ("q1", "q5")
#: From here on others take so much of the machine that the numbers say little.
BUSY_LOAD = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Everything that a run of the benchmark found."""

    command: str
    rows: int
    runs: int
    results: Results
    latencies: Sequence[Latency]
    #: How many processes wanted to run before the first run, on average of a minute; the benchmark's own not counted.
    load: float
    #: By format: the bytes of all messages.
    sizes: Mapping[str, int]


def document(measured: Measured) -> str:
    """The whole page."""
    parts = [
        "# Kafka, beside other engines",
        "Written by `make bench-kafka`; do not edit. Numbers are as measured, also where others are faster.",
        _setting(measured),
        _targets(measured.results),
        "## Messages per second",
        _speed(measured),
        *_latency(measured.latencies),
        "## How each was used",
        "\n".join(f"- **{engine.title}**: {engine.note}" for engine in ENGINES.values()),
        *_failures(measured),
        METHOD,
    ]
    return "\n\n".join(parts) + "\n"


METHOD = f"""## Method

Bids of Nexmark are written once, with msgspec and fastavro, to one topic for each format, with {PARTITIONS} partitions
and without compression, on one broker. The broker runs on the same machine, and shares its cores with whoever is
measured. Each run is a process tree of its own; the engines take turns in each case, and who is first changes.

- **Seconds** are from the call that starts the job, its planning included, in a Spark session that is up but cold, to
  its last commit; ratios are of medians. **Process** and **CPU** are of the whole tree, without the broker.
- q1 goes into nothing, and once more into a topic; q5 into a topic. Topics are read back by a consumer of committed
  messages, and DuckDB compares each row with its own answer over the same bids. Of what goes into nothing the rows are
  counted; the bare loop adds up the prices, too. An engine whose answer differs has no time.
- The bare loop asks nothing of its rows: beside q1 and q5 it is a bound, not a peer.
- **Latency**: {RATE:,} messages a second go through q1 into another topic. Each holds the clock of the moment when it
  was handed to the producer; a `read_committed` consumer compares that with the same clock when it gets the answer.
  The first {WARM_UP_S} s do not count. Ours makes an epoch every {LATENCY_INTERVAL}, and commits its messages in a
  transaction; Structured Streaming starts a micro-batch as soon as it can, and produces without transactions. Each
  message has to come out just once.

`python -m benchmarks.kafka --help` tells how to run parts of it."""


def _setting(measured: Measured) -> str:
    on = about()
    versions: dict[str, str] = {}
    for result in measured.results:
        versions |= result.about.get("versions") or {}  # type: ignore[call-overload]
    used = ", ".join(f"{name} {number}" for name, number in sorted(versions.items()))
    sizes = ", ".join(f"{size / measured.rows:.0f} bytes as {name.upper()}" for name, size in measured.sizes.items())
    return (
        f"{on['day']}; {on['cores']} cores ({on['cpu']}), {on['memory_gib']} GiB, Python {on['python']}, Java "
        f"{on['java']}. Commit {on['commit']}. {used}.\n"
        f"`{measured.command}`: {measured.rows:,} messages, {sizes} on average; {_runs(measured.runs)}."
        + _warning(measured.load)
    )


def _warning(load: float) -> str:
    """Nothing where the machine was at rest."""
    if load < BUSY_LOAD:
        return ""
    return f"\n\n**Others were at work on the machine (load {load:.1f} before the first run): measure again at rest.**"


def _runs(runs: int) -> str:
    return "one run of each" if runs == 1 else f"medians of {runs} runs"


def _compared(results: Results, case: Case, other: str) -> float | None:
    """Our messages/s over those of another; of a loop that only decodes, its in the same format."""
    ours = results.right(OURS, case.name)
    is_bare = ENGINES[other].script == ENGINES[BARE].script
    found = results.right(other, f"{DECODE}_{case.format}" if is_bare else case.name)
    return ours.rate / found.rate if ours and found else None


def _targets(results: Results) -> str:
    lines = ["## Targets", "", "|  | Target | Found |  |", "|---|---:|---:|---|"]
    for other, wanted in WANTED.items():
        for case in (case for case in CASES if case.query in MEASURED):
            found = _compared(results, case, other)
            shown = "not measured" if found is None else f"{found:.2f} times"
            met = "" if found is None else "met" if found >= wanted else "missed"
            lines.append(f"| {case.title}: against {ENGINES[other].title} | >= {wanted:g} times | {shown} | {met} |")
    return "\n".join(lines)


def _speed(measured: Measured) -> str:
    results = measured.results
    lines = [
        "| | Engine | Messages/s | Seconds, median | Fastest to slowest | Process | CPU | Epochs | Arroyo is |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for case in CASES:
        title = case.title
        for engine in ENGINES.values():
            found = results.right(engine.name, case.name)
            if found is None:
                continue
            ratio = results.ratio(OURS, engine.name, case.name)
            compared = "" if ratio is None or engine.name == OURS else f"{ratio:.2f} times as fast"
            fastest, slowest = found.spread
            lines.append(
                f"| {title} | {engine.title} | {found.rate:,.0f} | {found.job_s:.2f} | {fastest:.2f} to {slowest:.2f} "
                f"| {found.process_s:.1f} | {found.cpu_s:.1f} | {found.epochs} | {compared} |"
            )
            title = ""
    return "\n".join([*lines, "", *_bare_ratios(results)])


def _bare_ratios(results: Results) -> Iterator[str]:
    yield "Arroyo has so many times the messages/s of the bare loop, which only decodes:"
    yield ""
    cases = [case for case in CASES if case.query in MEASURED]
    yield "|  | " + " | ".join(case.title for case in cases) + " |"
    yield "|---|" + "---:|" * len(cases)
    for name in (BARE, BARE_TWO):
        ratios = (_compared(results, case, name) for case in cases)
        shown = ("" if ratio is None else f"{ratio:.2f}" for ratio in ratios)
        yield f"| {ENGINES[name].title} | " + " | ".join(shown) + " |"


def _latency(found: Sequence[Latency]) -> Iterator[str]:
    if not found:
        return
    lines = ["## From produce to committed output", "", "| Engine | Messages | p50 | p99 |", "|---|---:|---:|---:|"]
    lines += [
        f"| {ENGINES[item.engine].title} | {item.messages:,} | {item.p50_ms:,.0f} ms | {item.p99_ms:,.0f} ms |"
        for item in found
        if not item.wrong
    ]
    yield "\n".join(lines)


def _failures(measured: Measured) -> Iterator[str]:
    """Who has no time, and why."""
    reasons = [
        *((found.engine, found.query, found.missing or found.wrong) for found in measured.results),
        *((found.engine, "latency", found.wrong) for found in measured.latencies),
    ]
    lines = [
        f"- {ENGINES[engine].title}, {case}: {' '.join(reason.split())[:300]}"
        for engine, case, reason in reasons
        if reason
    ]
    if lines:
        yield "## Without a time\n\n" + "\n".join(lines)
