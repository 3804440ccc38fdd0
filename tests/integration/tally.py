"""A pipeline with two sources, a shuffle, keyed state and two exactly-once sinks, and its answer from DuckDB."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
from arroyo_jobs.checkpoints.verification import Verifier
from arroyo_testing import run_in_process

from arroyo_core.plugin import discover
from arroyo_core.state import ParquetBackend, get_storage_provider
from arroyo_core.state.inspection import read_table

JOB = "tally"
KEYS = 64
WINDOW_MS = 250

#: Of 50 events of Nexmark 46 are bids.
BIDS_PER_EVENT = 46 / 50

#: Both streams advance by this much event time per event, so that each lets the windows of the other close.
EVENT_TIME_US = 200
START = "2015-07-15T00:00:00Z"

PIPELINE = """
name: {job}
parallelism: 2
checkpoint: {{url: {folder}/state, interval: 1h, rows: {rows}, keep: 4, timeout: {timeout}}}
nodes:
  - id: bids
    operator: nexmark.source
    config: {{events: {events}, {rate} event_rate: {event_rate}, base_time: "{start}",
             fields: [auction, price, date_time]}}
  - id: ticks
    operator: impulse.source
    config: {{count: {events}, {rate} event_time_interval: {event_time_us}us, start_time: "{start}"}}
  - id: bid_rows
    operator: std.project
    inputs: [bids]
    config:
      expressions: {{key: auction % {keys}, amount: price, moment: date_time}}
  - id: tick_rows
    operator: std.project
    inputs: [ticks]
    config:
      expressions:
        key: cast(counter * 7919 % {keys} as bigint)
        amount: cast(counter as bigint)
        moment: timestamp
  - {{id: timed_bids, operator: std.watermark, inputs: [bid_rows], config: {{column: moment}}}}
  - {{id: timed_ticks, operator: std.watermark, inputs: [tick_rows], config: {{column: moment}}}}
  - {{id: tally, operator: chaos.tally, inputs: [timed_bids, timed_ticks], config: {{window_ms: {window_ms}}}}}
  - {{id: both, operator: std.union, inputs: [timed_bids, timed_ticks]}}
  - {{id: windows, operator: filesystem.sink, inputs: [tally], config: {{path: {folder}/windows}}}}
  - {{id: rows, operator: filesystem.sink, inputs: [both], config: {{path: {folder}/rows}}}}
{latest}"""

LATEST = """\
  - {{id: latest, operator: chaos.latest, inputs: [tally], config: {{path: {folder}/latest.db, {pause}}}}}
"""

BIDS = """
name: bids
nodes:
  - id: bids
    operator: nexmark.source
    config: {{events: {events}, event_rate: {event_rate}, base_time: "{start}", fields: [auction, price, date_time]}}
  - {{id: files, operator: filesystem.sink, inputs: [bids], config: {{path: {folder}/bids}}}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How much goes through the pipeline, and in how many epochs at least."""

    events: int
    rows_per_epoch: int
    #: Events per second of each source; None for as fast as it can.
    rate: int | None = None
    #: Whether the windows also go to a sink in which the last writer wins.
    has_latest: bool = False
    #: The epoch before whose commit there the driver stops itself, once; 0 for none.
    pause_epoch: int = 0
    #: After how long without progress an epoch is cancelled.
    timeout: str = "10m"

    @classmethod
    def of_epochs(
        cls,
        epochs: int,
        *,
        rows_per_epoch: int = 8000,
        rate: int = 40_000,
        has_latest: bool = False,
        pause_epoch: int = 0,
        timeout: str = "10m",
    ) -> Tally:
        """About so many epochs: each ends when each of the four source subtasks has given its share."""
        return cls(
            events=epochs * rows_per_epoch // 2,
            rows_per_epoch=rows_per_epoch,
            rate=rate,
            has_latest=has_latest,
            pause_epoch=pause_epoch,
            timeout=timeout,
        )

    def write(self, folder: Path, *, is_paced: bool = True) -> Path:
        """The pipeline's file, in `folder`, where its state and its output go too."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "pipeline.yaml"
        rate = f"rate: {self.rate}," if self.rate and is_paced else ""
        pause = f"marker: {folder}/paused, pause_epoch: {self.pause_epoch}" if self.pause_epoch and is_paced else ""
        latest = LATEST.format(folder=folder, pause=pause) if self.has_latest else ""
        path.write_text(PIPELINE.format(**self._values(folder), rate=rate, rows=self.rows_per_epoch, latest=latest))
        return path

    def assert_exact(self, folder: Path, scratch: Path) -> str:
        """What the job in `folder` committed and keeps is what its events demand; returns a sentence about it."""
        with self._oracle(scratch) as db:
            rows = _assert_equal(db, "rows", f"select * from read_parquet('{folder}/rows/part-*.parquet')", ROWS)
            windows = _assert_equal(
                db, "windows", f"select * from read_parquet('{folder}/windows/part-*.parquet')", WINDOWS
            )
            if self.has_latest:
                db.register("latest_windows", read_latest(folder))
                _assert_equal(db, "latest windows", "select * from latest_windows", LATEST_WINDOWS)
            state = read_state(folder)
            for name, table in state.items():
                db.register(f"state_{name}", table)
            keys = _assert_equal(db, "state of totals", STATE_TOTALS, TOTALS)
            _assert_equal(db, "state of greatest", "select key, moment, greatest from state_greatest", GREATEST)
        assert state["windows"].num_rows == 0, "windows are left open after the end"
        positions = read_state(self._undisturbed(scratch))
        assert state["bids"].equals(positions["bids"]), "the positions of the bids differ"
        assert state["ticks"].equals(positions["ticks"]), "the positions of the ticks differ"
        return f"{rows:,} rows, {windows:,} windows, state of {keys} keys: exact"

    def _undisturbed(self, scratch: Path) -> Path:
        """A folder in which the same pipeline ran in this process, without Spark and without failure."""
        folder = scratch / "undisturbed"
        if not folder.exists():
            run_in_process(self.write(folder, is_paced=False), plugins=discover())
        return folder

    @contextmanager
    def _oracle(self, scratch: Path) -> Iterator[duckdb.DuckDBPyConnection]:
        """DuckDB with the events of both sources as `events`."""
        if not (scratch / "bids").exists():
            scratch.mkdir(parents=True, exist_ok=True)
            path = scratch / "bids.yaml"
            path.write_text(BIDS.format(**self._values(scratch)))
            run_in_process(path, plugins=discover())
        with duckdb.connect() as db:
            db.execute("set timezone = 'UTC'")
            db.execute(EVENTS.format(**self._values(scratch)))
            yield db

    def _values(self, folder: Path) -> dict[str, object]:
        return {
            "job": JOB,
            "folder": folder,
            "events": self.events,
            "event_rate": 1_000_000 // EVENT_TIME_US,
            "event_time_us": EVENT_TIME_US,
            "keys": KEYS,
            "start": START,
            "window_ms": WINDOW_MS,
            "timeout": self.timeout,
        }


EVENTS = """
    create table events as
    select 0 as stream, auction % {keys} as key, price as amount, date_time as moment
    from read_parquet('{folder}/bids/part-*.parquet')
    union all
    select 1, range * 7919 % {keys}, range, timestamptz '{start}' + to_microseconds(range * {event_time_us})
    from range({events})
"""
ROWS = "select key, amount, moment from events"
WINDOWS = f"""
    select key, stream, time_bucket(interval {WINDOW_MS} milliseconds, moment), count(*), sum(amount)::bigint,
        max(amount)
    from events group by all
"""
LATEST_WINDOWS = f"""
    select * from ({WINDOWS}) as windows(key, stream, moment, count, total, greatest)
    qualify row_number() over (partition by key, stream order by moment desc) = 1
"""
TOTALS = "select key, count(*), sum(amount)::bigint from events group by key"
GREATEST = "select key, max(moment), max(amount) from events group by key"
STATE_TOTALS = """
    select key::bigint, (value::json->0)::bigint, (value::json->1)::bigint from state_totals
"""


def read_state(folder: Path) -> dict[str, pa.Table]:
    """The tables of the operator and of the sources at the last checkpoint, every file of which is whole."""
    backend = ParquetBackend(get_storage_provider((folder / "state").as_uri()), JOB)
    epoch = backend.list_epochs()[-1]
    problems = Verifier(backend).verify(epoch).problems
    assert not problems, problems
    metadata = backend.load_checkpoint_metadata(JOB, epoch)
    tables = {name: read_table(backend.storage, metadata, JOB, name) for name in ("windows", "greatest", "totals")}
    return tables | {name: read_table(backend.storage, metadata, name, "s") for name in ("bids", "ticks")}


def read_latest(folder: Path) -> pa.Table:
    """What the sink keeps in which the last writer wins."""
    with closing(sqlite3.connect(folder / "latest.db")) as database:
        rows = database.execute("select key, stream, moment, count, total, greatest from latest").fetchall()
    names = ["key", "stream", "moment", "count", "total", "greatest"]
    columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
    table = pa.table(columns, names=names)
    return table.set_column(2, "moment", table.column("moment").cast(pa.timestamp("us", "UTC")))


def published_epoch(folder: Path) -> int:
    """The last epoch that is in storage, 0 before the first."""
    backend = ParquetBackend(get_storage_provider((folder / "state").as_uri()), JOB)
    return max(backend.list_epochs(), default=0)


def _assert_equal(db: duckdb.DuckDBPyConnection, what: str, got: str, expected: str) -> int:
    """Both queries give the same rows, as often; returns how many."""
    missing = db.execute(f"({expected}) except all ({got}) limit 5").fetchall()
    extra = db.execute(f"({got}) except all ({expected}) limit 5").fetchall()
    assert (missing, extra) == ([], []), f"{what} differ: missing {missing}, too many {extra}"
    ((count,),) = db.execute(f"select count(*) from ({got})").fetchall()
    assert count, f"there are no {what}"
    return int(count)
