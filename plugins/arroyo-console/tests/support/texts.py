"""Pipelines that tests run."""

from __future__ import annotations


def paced(name: str, *, rate: int = 200, extra: str = "") -> str:
    """Goes on until it is stopped, and commits each second."""
    return f"""name: {name}
checkpoint: {{interval: 500ms}}
nodes:
  - id: bids
    operator: nexmark.source
    config: {{rate: {rate}, table: bid}}
  - id: counts
    operator: std.updating_aggregate
    inputs: [bids]
    config: {{keys: [channel], aggregates: [{{function: count, as: n}}]}}
  - {{id: out, operator: std.stdout, inputs: [counts]}}
{extra}"""


def bounded(name: str, *, path: str) -> str:
    """Ends by itself; writes rows into a folder."""
    return f"""name: {name}
nodes:
  - id: bids
    operator: nexmark.source
    config: {{events: 2000, table: bid}}
  - {{id: out, operator: filesystem.sink, inputs: [bids], config: {{path: {path}, format: json}}}}
"""


BROKEN = """name: broken
nodes:
  - id: bids
    operator: nexmark.sourse
  - {id: out, operator: std.blackhole, inputs: [bids]}
"""


def failing(name: str) -> str:
    """Divides by zero in its first row."""
    return f"""name: {name}
nodes:
  - id: bids
    operator: nexmark.source
    config: {{rate: 200, table: bid}}
  - id: bad
    operator: std.project
    inputs: [bids]
    config: {{expressions: {{x: "price / (price - price)"}}}}
  - {{id: out, operator: std.blackhole, inputs: [bad]}}
"""
