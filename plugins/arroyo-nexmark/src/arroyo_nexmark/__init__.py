"""Deterministic sources for tests and benchmarks: `nexmark.source` and `impulse.source`."""
