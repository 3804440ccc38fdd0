"""What the sources of a query make: few events, chosen so that a query has something to do in every epoch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from arroyo_testing import run_in_process

from ..lives.answers import Tables, read_parquet

TABLES = ("bid", "auction", "person")


@dataclass(frozen=True, slots=True)
class Events:
    """How many rows are one epoch, and fields of the source's config, in their JSON form."""

    epoch_rows: int
    source: Mapping[str, object] = field(default_factory=dict)


def make_events(source: Mapping[str, object], folder: Path) -> Tables:
    """All tables of Nexmark as the source makes them."""
    sources = [{"id": table, "operator": "nexmark.source", "config": {**source, "table": table}} for table in TABLES]
    sinks = [
        {
            "id": f"{table}_files",
            "operator": "filesystem.sink",
            "inputs": [table],
            "config": {"path": str(folder / table)},
        }
        for table in TABLES
    ]
    path = folder / "events.yaml"
    path.write_text(json.dumps({"name": "events", "nodes": [*sources, *sinks]}))
    assert run_in_process(path).is_finished
    return {table: read_parquet(folder / table) for table in TABLES}
