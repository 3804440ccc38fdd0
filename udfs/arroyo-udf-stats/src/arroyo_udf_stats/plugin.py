"""Registers the aggregates."""

from __future__ import annotations

from arroyo_core.api import Registry
from arroyo_core.plugin import hookimpl


@hookimpl
def arroyo_register(registry: Registry) -> None:
    from arroyo_udf_stats import distinct, frequent, means, moments, quantiles, sample

    for function in (
        means.ewma,
        means.geometric_mean,
        means.harmonic_mean,
        means.weighted_mean,
        moments.kurtosis,
        moments.skewness,
        moments.trend_per_s,
        frequent.mode,
        frequent.mode_int,
        frequent.top_values,
        distinct.hll_distinct,
        distinct.hll_distinct_int,
        distinct.hll_estimate,
        distinct.hll_merge,
        distinct.hll_sketch,
        distinct.hll_sketch_int,
        quantiles.tdigest_quantile,
        quantiles.tdigest_summary,
        sample.reservoir_sample,
    ):
        registry.add_udf(function)
