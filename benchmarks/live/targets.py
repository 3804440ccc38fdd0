"""What live workers are to reach, and whether they do."""

from __future__ import annotations

from statistics import median

from ..nexmark.engines import OURS_LIVE
from ..nexmark.queries import AVERAGED
from ..nexmark.results import Results
from ..nexmark.targets import Target
from .found import LARGE_QUERIES, PAIR, Found

NOT_MEASURED = "not measured"


def targets(found: Found) -> list[Target]:
    """Those of the design, in its order, and then those on 40 million bids."""
    return [
        _ratio(found, "live_empty", "an epoch without rows, over a bare Spark job", 0.1),
        _ratio(found, "live_small", "a stateful epoch of 1,000 rows, over Structured Streaming's micro-batch", 0.12),
        _within(
            found, "live_latency", "from an event to its committed row in Parquet at 10,000 rows/s, 99 of 100", 0.06
        ),
        _within(
            found,
            "live_shown",
            "from an event to its line of `std.stdout`, `at_once`, at 10,000 rows/s, 99 of 100",
            0.01,
        ),
        _mean(found.queries, AVERAGED, "10 million bids", 0.8),
        _cores(found, 1.7),
        _within(found, "live_restart", "from `kill -9` of a worker to the next commit", 1.0, "kill -9"),
        _mean(found.large, LARGE_QUERIES, "40 million bids", 0.8),
        _pair(found, 0.8),
        _growth(found, 4.4),
    ]


def _ratio(found: Found, case: str, title: str, wanted: float) -> Target:
    if case not in found.cases:
        return Target(title, f"<= {wanted:g}", NOT_MEASURED, None)
    ours, *_, other = (median(values) for values in found.cases[case].values())
    text = f"{ours / other:.3f} ({ours * 1000:.1f} ms over {other * 1000:.1f} ms)"
    return Target(title, f"<= {wanted:g}", text, ours / other <= wanted)


def _within(found: Found, case: str, title: str, wanted_s: float, part: str = "99 of 100") -> Target:
    """The least median counts: each interval of epochs is a way to run it."""
    wanted = f"<= {wanted_s * 1000:,.0f} ms"
    if case not in found.cases:
        return Target(title, wanted, NOT_MEASURED, None)
    medians = {name: median(values) for name, values in found.cases[case].items() if part in name}
    best = min(medians, key=lambda name: medians[name])
    how = f" ({best.partition(':')[0]})" if ":" in best else ""
    return Target(title, wanted, f"{medians[best] * 1000:,.1f} ms{how}", medians[best] <= wanted_s)


def _cores(found: Found, wanted: float) -> Target:
    title = "q5 on two cores, over one"
    if "live_cores" not in found.cases:
        return Target(title, f">= {wanted:g} times", NOT_MEASURED, None)
    two, one = (median(values) for values in found.cases["live_cores"].values())
    return Target(
        title, f">= {wanted:g} times", f"{one / two:.2f} times ({two:.2f} s, {one:.2f} s)", one / two >= wanted
    )


def _mean(results: Results, queries: tuple[str, ...], size: str, wanted: float) -> Target:
    title = f"geometric mean of {', '.join(queries)} over Polars' batch, {size}"
    mean = results.geometric_mean(OURS_LIVE, "polars", queries)
    if mean is None:
        return Target(title, f">= {wanted:g} times", NOT_MEASURED, None)
    ratio, count = mean
    of = "" if count == len(queries) else f" (of {count} queries)"
    return Target(title, f">= {wanted:g} times", f"{ratio:.2f} times{of}", ratio >= wanted)


def _pair(found: Found, wanted: float) -> Target:
    title = "q2 over two bare pyarrow loops side by side, 40 million bids"
    ratio = found.large.ratio(OURS_LIVE, PAIR.name, "q2")
    if ratio is None:
        return Target(title, f">= {wanted:g} times", NOT_MEASURED, None)
    return Target(title, f">= {wanted:g} times", f"{ratio:.2f} times", ratio >= wanted)


def _growth(found: Found, wanted: float) -> Target:
    title = "q11 on 40 million bids, over 10 million"
    few, many = found.queries.right(OURS_LIVE, "q11"), found.large.right(OURS_LIVE, "q11")
    if few is None or many is None:
        return Target(title, f"<= {wanted:g}", NOT_MEASURED, None)
    ratio = many.job_s / few.job_s
    return Target(title, f"<= {wanted:g}", f"{ratio:.2f} ({many.job_s:.2f} s, {few.job_s:.2f} s)", ratio <= wanted)
