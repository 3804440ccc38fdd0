"""`python -m tests.soak.files --minutes 30 --files 20000`: files that keep coming, and whether anything grows.

A thread writes small files at an even rate. A pipeline reads them as they come, moves each to an archive once it is
committed, and joins their rows to larger files. It looks at each listing (how long, how many files), at the state of
the source, and at how long each file waited from its last byte to the archive; and it counts every row.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from arroyo_filesystem import new_files
from arroyo_testing import run_in_process

from arroyo_core.state import ParquetBackend, get_storage_provider, inspection

MIB = 2**20
#: How often the state is looked at; eight times as often in a run of a minute.
SAMPLE_S = 2.0
#: What may be more at the end than at the beginning: on a busy machine, times are up to chance.
GROWTH = 1.5
PIPELINE = """
name: files
parallelism: {parallelism}
checkpoint: {{url: {folder}/state, interval: {interval}, keep: 2}}
nodes:
  - id: in
    operator: filesystem.source
    config:
      path: {folder}/in
      format: json
      schema: {{n: int64, text: string}}
      watch: {poll}
      order: name
      lateness: {lateness}
      until: {until}
      after_commit: archive
      archive_path: {folder}/read
  - id: out
    operator: filesystem.sink
    inputs: [in]
    config: {{path: {folder}/out, min_file_size: {min_file_size}, max_hold: 1h}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What comes in, and how it is read."""

    files: int
    duration_s: float
    rows_per_file: int = 250
    parallelism: int = 2
    interval: str = "2s"
    poll: str = "1s"
    lateness: str = "30s"
    min_file_bytes: int = 32 * MIB
    #: The last look is so much later than the last file is due.
    slack_s: float = 30.0


@dataclass(slots=True)
class Outcome:
    """What was seen; each list in the order of time, of pairs of seconds after the start and a value."""

    load: Load
    #: Seconds of each listing, and the files that it showed.
    listing_s: list[tuple[float, float]] = field(default_factory=list)
    listed_files: list[tuple[float, float]] = field(default_factory=list)
    #: Rows of the source's tables.
    state_rows: list[tuple[float, float]] = field(default_factory=list)
    state_bytes: list[tuple[float, float]] = field(default_factory=list)
    #: From the last byte of a file to its move into the archive.
    latency_s: list[tuple[float, float]] = field(default_factory=list)
    output_bytes: list[int] = field(default_factory=list)
    rows: int = 0
    missing_rows: int = 0
    repeated_rows: int = 0
    left_files: int = 0
    #: How late a file was written, at most: a machine that is too busy for the load shows nothing.
    behind_s: float = 0.0
    duration_s: float = 0.0

    def quarters(self) -> dict[str, tuple[float, float]]:
        """The medians of each measure in the second quarter of the run and in its last."""
        return {
            name: (_median(values, self.load.duration_s, 1), _median(values, self.load.duration_s, 3))
            for name, values in self._measures().items()
        }

    def _measures(self) -> dict[str, Sequence[tuple[float, float]]]:
        return {
            "listing_s": self.listing_s,
            "listed_files": self.listed_files,
            "state_rows": self.state_rows,
            "state_bytes": self.state_bytes,
            "latency_s": self.latency_s,
        }

    def problems(self, *, judges_times: bool = True) -> list[str]:
        """What is not as it has to be."""
        found = []
        if self.missing_rows or self.repeated_rows or self.left_files:
            found.append(
                f"{self.missing_rows} rows are missing, {self.repeated_rows} come twice, "
                f"{self.left_files} files are left"
            )
        if judges_times:
            found += self._gaps()
        for name, (early, late) in self.quarters().items():
            if name.endswith("_s") and not judges_times:
                continue
            # Some things more are not growth.
            if late > early * GROWTH + (1 if name.endswith("_s") else 60 if name != "state_bytes" else 20_000):
                found.append(f"{name}: {early:.3f} in the second quarter, {late:.3f} in the last")
        small = [size for size in self.output_bytes[: -self.load.parallelism] if size < self.load.min_file_bytes * 0.9]
        # The first file of each subtask is made before anything is known of such files.
        if len(small) > self.load.parallelism:
            found.append(f"{len(small)} files of {len(self.output_bytes)} are below {self.load.min_file_bytes} bytes")
        return found

    def _gaps(self) -> Iterator[str]:
        """What makes the run say nothing."""
        if self.behind_s > self.load.slack_s:
            yield f"files were written up to {self.behind_s:.0f} s late: the machine is too busy for so many"
        for name, values in self._measures().items():
            for which, quarter in (("second", 1), ("last", 3)):
                if not _within(values, self.load.duration_s, quarter):
                    yield f"{name}: nothing was seen in the {which} quarter"

    def table(self) -> str:
        """The report for a page."""
        listings = [len(_within(self.listing_s, self.load.duration_s, quarter)) for quarter in (1, 3)]
        shown = {
            "listings": (f"{listings[0]}", f"{listings[1]}"),
            "files that a listing shows": self._shown("listed_files", "{:.0f}"),
            "time of a listing": self._shown("listing_s", "{:.1f} ms", 1000),
            "rows of state": self._shown("state_rows", "{:.0f}"),
            "bytes of state": self._shown("state_bytes", "{:.0f}"),
            "from the last byte of a file to the archive": self._shown("latency_s", "{:.2f} s"),
        }
        rows = [f"| {name} | {early} | {late} |" for name, (early, late) in shown.items()]
        sizes = ", ".join(f"{size / MIB:.1f}" for size in self.output_bytes)
        return "\n".join(
            [
                "| Median | Second quarter | Last quarter |",
                "|---|---:|---:|",
                *rows,
                "",
                f"{self.load.files:,} files of {self.load.rows_per_file} rows in {self.load.duration_s / 60:.0f} "
                f"minutes, parallelism {self.load.parallelism}: {self.rows:,} rows written, {self.missing_rows} "
                f"missing, {self.repeated_rows} twice. Output files, in MiB: {sizes}.",
            ]
        )

    def _shown(self, name: str, form: str, factor: float = 1) -> tuple[str, str]:
        early, late = self.quarters()[name]
        return form.format(early * factor), form.format(late * factor)

    def report(self) -> str:
        lines = [
            f"{self.load.files} files of {self.load.rows_per_file} rows in {self.duration_s:.0f} s: {self.rows} rows, "
            f"{len(self.listing_s)} listings, {len(self.output_bytes)} files of "
            f"{', '.join(f'{size / MIB:.1f}' for size in self.output_bytes[:12])} MiB"
        ]
        for name, (early, late) in self.quarters().items():
            lines.append(f"{name:14} {early:14.3f} in the second quarter {late:14.3f} in the last")
        return "\n".join(lines)


def soak_files(load: Load, folder: Path) -> Outcome:
    """Run the load in `folder`, which is empty."""
    outcome = Outcome(load)
    for name in ("in", "read"):
        (folder / name).mkdir(parents=True)
    begun = time.time()
    until = datetime.fromtimestamp(begun + load.duration_s + load.slack_s, UTC).isoformat()
    pipeline = folder / "files.yaml"
    pipeline.write_text(
        PIPELINE.format(
            folder=folder,
            parallelism=load.parallelism,
            interval=load.interval,
            poll=load.poll,
            lateness=load.lateness,
            until=json.dumps(until),
            min_file_size=load.min_file_bytes,
        )
    )
    over = threading.Event()
    threads = [
        threading.Thread(target=_write, args=(load, folder, begun, outcome)),
        threading.Thread(target=_sample, args=(folder, begun, outcome, over)),
    ]
    for thread in threads:
        thread.start()
    try:
        with _watched_listings(begun, outcome):
            run_in_process(pipeline)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    outcome.duration_s = time.time() - begun
    _judge(load, folder, begun, outcome)
    return outcome


def _write(load: Load, folder: Path, begun: float, outcome: Outcome) -> None:
    draw = random.Random(1)
    for number in range(load.files):
        due = begun + load.duration_s * number / load.files
        time.sleep(max(0.0, due - time.time()))
        first = number * load.rows_per_file
        rows = (
            f'{{"n": {first + row}, "text": "{draw.getrandbits(256):064x}"}}\n' for row in range(load.rows_per_file)
        )
        draft = folder / "in" / f"_{number}"
        draft.write_text("".join(rows))
        draft.rename(folder / "in" / f"{number:08}.jsonl")
        outcome.behind_s = max(outcome.behind_s, time.time() - due)


def _sample(folder: Path, begun: float, outcome: Outcome, over: threading.Event) -> None:
    while not over.wait(SAMPLE_S if outcome.load.duration_s > 60 else SAMPLE_S / 8):
        storage = get_storage_provider(str(folder / "state"))
        backend = ParquetBackend(storage, "files")
        try:
            metadata = backend.load_checkpoint_metadata("files", max(backend.list_epochs()))
            tables = [inspection.read_table(storage, metadata, "in", name) for name in ("f", "s", "k")]
        except Exception as error:
            # A checkpoint goes while it is read, or there is none yet.
            print(f"no sample: {type(error).__name__}", file=sys.stderr)
            continue
        now = time.time() - begun
        outcome.state_rows.append((now, sum(table.num_rows for table in tables)))
        outcome.state_bytes.append((now, sum(table.nbytes for table in tables)))


@contextmanager
def _watched_listings(begun: float, outcome: Outcome) -> Iterator[None]:
    made = new_files.list_files

    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.time()
        found = made(*args, **kwargs)
        outcome.listing_s.append((start - begun, time.time() - start))
        outcome.listed_files.append((start - begun, len(found)))
        return found

    new_files.list_files = timed
    try:
        yield
    finally:
        new_files.list_files = made


def _judge(load: Load, folder: Path, begun: float, outcome: Outcome) -> None:
    for path in sorted((folder / "read").glob("*.jsonl")):
        status = path.stat()
        # A rename changes the time of the inode, and nothing else.
        outcome.latency_s.append((status.st_mtime - begun, status.st_ctime - status.st_mtime))
    outcome.left_files = len(list((folder / "in").glob("*")))
    seen = bytearray(load.files * load.rows_per_file)
    for path in sorted((folder / "out").glob("part-*")):
        outcome.output_bytes.append(path.stat().st_size)
        for number in pq.ParquetFile(path).read(["n"])["n"].to_pylist():
            outcome.rows += 1
            outcome.repeated_rows += seen[number]
            seen[number] = 1
    outcome.missing_rows = seen.count(0)


def _median(values: Sequence[tuple[float, float]], duration_s: float, quarter: int) -> float:
    return statistics.median(_within(values, duration_s, quarter) or [0.0])


def _within(values: Sequence[tuple[float, float]], duration_s: float, quarter: int) -> list[float]:
    first, last = duration_s * quarter / 4, duration_s * (quarter + 1) / 4
    return [value for at, value in values if first <= at < last]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.files", description=__doc__)
    parser.add_argument("--files", type=int, default=20_000, help="how many come (default: 20000)")
    parser.add_argument("--minutes", type=float, default=30.0, help="in how long (default: 30)")
    parser.add_argument("--parallelism", type=int, default=2)
    args = parser.parse_args()
    build = Path(__file__).resolve().parents[2] / "build" / "soak"
    shutil.rmtree(build / "files", ignore_errors=True)
    load = Load(files=args.files, duration_s=args.minutes * 60, parallelism=args.parallelism)
    outcome = soak_files(load, build / "files")
    (build / "files.json").write_text(json.dumps(asdict(outcome)))
    (build / "files.md").write_text(outcome.table() + "\n")
    print(outcome.report())
    print(outcome.table())
    problems = outcome.problems()
    for problem in problems:
        print(problem, file=sys.stderr)
    shutil.rmtree(build / "files")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
