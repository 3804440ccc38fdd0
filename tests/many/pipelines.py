"""The small pipelines that run together: ticks, keyed windows and two exactly-once sinks each, at parallelism 1."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb
import yaml

#: Ticks per second while a source runs, and their keys.
RATE = 10
KEYS = 20


@dataclass(frozen=True, slots=True)
class Small:
    """One of them, and where it keeps what."""

    number: int
    root: Path
    interval: str

    @property
    def name(self) -> str:
        return f"small_{self.number:02}"

    @property
    def file(self) -> Path:
        return self.root / "pipelines" / f"{self.name}.yaml"

    @property
    def output(self) -> Path:
        return self.root / "out" / self.name

    @property
    def state(self) -> Path:
        """Shared by all of them."""
        return self.root / "state"

    @property
    def trigger(self) -> Path:
        """Once this file is there, the pipeline fails for good."""
        return self.root / f"{self.name}.fail"

    def write(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(yaml.safe_dump(self._document(), sort_keys=False))

    def problem(self, source_rows: int) -> str | None:
        """What is wrong with its committed rows, of which there must be each tick once, and none twice."""
        if not list(self.output.glob("rows/part-*")):
            return f"{self.name} has no rows" if source_rows else None
        with duckdb.connect() as db:
            query = (
                f"select count(*), count(distinct n), max(n) + 1 from read_parquet('{self.output}/rows/part-*.parquet')"
            )
            ((rows, distinct, following),) = db.execute(query).fetchall()
        if rows == distinct == following == source_rows:
            return None
        return (
            f"{self.name} has {rows} rows, {distinct} of them distinct, up to {following - 1}; its source gave "
            f"{source_rows}"
        )

    def _document(self) -> dict[str, object]:
        return {
            "name": self.name,
            "checkpoint": {"url": str(self.state), "interval": self.interval},
            "nodes": [
                {"id": "ticks", "operator": "impulse.source", "config": {"rate": RATE}},
                {
                    "id": "fault",
                    "operator": "chaos.strike",
                    "inputs": ["ticks"],
                    "config": {
                        "deed": "fail",
                        "marker": str(self.root / self.name),
                        "times": 99,
                        "trigger": str(self.trigger),
                    },
                },
                {
                    "id": "keyed",
                    "operator": "std.project",
                    "inputs": ["fault"],
                    "config": {
                        "expressions": {
                            "n": "cast(counter as bigint)",
                            "key": f"cast(counter % {KEYS} as bigint)",
                            "moment": "timestamp",
                        }
                    },
                },
                {"id": "timed", "operator": "std.watermark", "inputs": ["keyed"], "config": {"column": "moment"}},
                {
                    "id": "windows",
                    "operator": "std.tumbling_window",
                    "inputs": ["timed"],
                    "config": {
                        "size": "10s",
                        "keys": ["key"],
                        "aggregates": [
                            {"function": "count", "as": "ticks"},
                            {"function": "max", "column": "n", "as": "last"},
                        ],
                    },
                },
                {
                    "id": "row_files",
                    "operator": "filesystem.sink",
                    "inputs": ["timed"],
                    "config": {"path": str(self.output / "rows"), "format": "parquet"},
                },
                {
                    "id": "window_files",
                    "operator": "filesystem.sink",
                    "inputs": ["windows"],
                    "config": {"path": str(self.output / "windows"), "format": "parquet"},
                },
            ],
        }


def write_pipelines(root: Path, count: int, *, interval: str) -> list[Small]:
    pipelines = [Small(number, root, interval) for number in range(1, count + 1)]
    for each in pipelines:
        each.write()
    return pipelines
