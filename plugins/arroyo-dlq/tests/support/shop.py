"""A pipeline that leaves dead letters, run in process."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
from arroyo_testing import run_in_process

from arroyo_core.cli.main import main

PIPELINE = """\
name: shares
parallelism: 2
checkpoint: {{url: {folder}/state}}
nodes:
  - id: orders
    operator: filesystem.source
    config: {{path: "{folder}/orders.json", schema: {{n: int64, name: string, at: timestamp}}, event_time_field: at}}
  - id: shared
    operator: std.project
    inputs: [orders]
    config: {{keep: [name, at], expressions: {{share: "{share}"}}, on_error: dead_letter}}
  - id: even
    operator: std.filter
    inputs: [shared]
    config: {{predicate: "100 % share >= 0", on_error: dead_letter}}
  - id: out
    operator: filesystem.sink
    inputs: [even]
    config: {{path: "{folder}/out"}}
  - id: bad
    operator: std.union
    inputs: [shared.errors, late.errors]
  - id: dead
    operator: filesystem.sink
    inputs: [bad]
    config: {{path: "{folder}/dead"}}
  - id: dead_shares
    operator: filesystem.sink
    inputs: [even.errors]
    config: {{path: "{folder}/dead"}}
  - id: late
    operator: std.filter
    inputs: [orders]
    config: {{predicate: "n > -1", on_error: dead_letter}}
  - {{id: nothing, operator: std.blackhole, inputs: [late]}}
"""
#: 0 has no share; a share of 0 cannot be divided by.
BROKEN, FIXED, ZERO = "12 / n", "CASE WHEN n = 0 THEN 1 ELSE 12 / n END", "CASE WHEN n = 0 THEN 0 ELSE 12 / n END"


class Shop:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "shares.yaml"
        self.dead = str(folder / "dead")
        self.write()

    @classmethod
    def that_has_run(cls, folder: Path) -> Shop:
        """A pipeline that has run, and left three dead letters of node `shared`."""
        numbers = [1, 0, 2, 0, 3, 4, 0]
        rows = [{"n": n, "name": f"order {i}", "at": f"2026-01-01T00:00:0{i}Z"} for i, n in enumerate(numbers)]
        (folder / "orders.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
        shop = cls(folder)
        run_in_process(shop.file)
        return shop

    def write(self, share: str = BROKEN, **changes: str) -> None:
        text = PIPELINE.format(folder=self.folder, share=share)
        for old, new in changes.items():
            text = text.replace(old, new)
        self.file.write_text(text)

    def out(self, folder: str = "out") -> Counter[tuple[str, int]]:
        paths = [path for path in (self.folder / folder).glob("**/*.parquet") if "_" not in path.parts[-2]]
        return Counter((row["name"], row["share"]) for path in paths for row in pq.read_table(path).to_pylist())

    def replay(self, *arguments: str) -> int:
        return main(["dlq", "replay", self.dead, "--pipeline", str(self.file), "--in-process", *arguments])


GOOD = {("order 0", 12): 1, ("order 2", 6): 1, ("order 4", 4): 1, ("order 5", 3): 1}
REPLAYED = {("order 1", 1): 1, ("order 3", 1): 1, ("order 6", 1): 1}


def outage(*_: object) -> None:
    raise IsADirectoryError("the store is away")
