"""Aggregates whose states merge in any order: means, distinct counts, quantiles, samples, modes and trends."""
