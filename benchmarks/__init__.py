"""Measurements: `python -m benchmarks.NAME --help` in the project's root; the `bench` targets of make run all of each.

`nexmark` is the benchmark beside other engines; `epochs`, `operators`, `state` and `udfs` each measure one thing alone.
"""
