"""Odd and bad lines beside clean ones: files of a million lines, read as `filesystem.source` reads them.

What odd lines cost is a ratio to clean lines in the same run: seconds of CPU, the best of three rounds, in which all
kinds take turns. Answers are checked.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from arroyo_formats import WHOLE_FILE, BadRow, FormatChoice, read_choice
from fsspec.implementations.local import LocalFileSystem
from google.protobuf import json_format, struct_pb2

SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "customer": pa.int64(),
        "product": pa.string(),
        "price": pa.float64(),
        "placed_at": pa.timestamp("us", "UTC"),
    }
)
ROUNDS = 3
BATCH_ROWS = 65_536
#: Lines of the files in which every line is bad.
BAD_LINES = 20_000

Values = Callable[[int], str]


@dataclass(frozen=True)
class Case:
    """One kind of lines: how the time of a line is written, which lines are broken, and what reads them."""

    label: str
    time: Values
    is_broken: Callable[[int], bool] = lambda number: False
    settings: dict[str, Any] = field(default_factory=dict)


def iso(number: int) -> str:
    return f'"2025-12-{number % 28 + 1:02}T{number % 24:02}:{number % 60:02}:00.{number % 1000:03}Z"'


def day_first(number: int) -> str:
    return f'"{number % 28 + 1:02}/12/2025 {number % 24:02}:{number % 60:02}:00"'


def with_numbers(number: int) -> str:
    """One in seven is a number, which are 14 %."""
    return str(1_766_000_000_000_000 + number) if number % 7 == 0 else iso(number)


def one_in_hundred(number: int) -> bool:
    return number % 100 == 50


def cases() -> Sequence[Case]:
    return [
        Case("clean", iso),
        Case("14 % of the times are numbers", with_numbers),
        Case("1 % of the lines are broken", iso, is_broken=one_in_hundred),
        Case("both", with_numbers, is_broken=one_in_hundred),
        Case("times as 31/12/2025 10:00:00", day_first, settings={"timestamp_formats": ["%d/%m/%Y %H:%M:%S"]}),
    ]


def all_bad() -> Sequence[Case]:
    return [
        Case("31/12/2025 10:00:00 without timestamp_formats", day_first),
        Case("broken in the middle", iso, is_broken=lambda number: True),
    ]


def json_line(case: Case, number: int) -> str:
    text = (
        f'{{"id": {number}, "customer": {number * 7919 % 100_000}, "product": "product {number % 5000}", '
        f'"price": {number % 10_000 / 4}, "placed_at": {case.time(number)}}}'
    )
    return text[:60] if case.is_broken(number) else text


def csv_line(case: Case, number: int) -> str:
    head = f"{number},{number * 7919 % 100_000},product {number % 5000}"
    tail = f"{number % 10_000 / 4},{case.time(number).strip(chr(34))}"
    return head if case.is_broken(number) else f"{head},{tail}"


def quoted_line(case: Case, number: int) -> str:
    """With a line end inside a value, and nothing that says so."""
    return f'{number},1,"product\n{number}",1.5,{case.time(number).strip(chr(34))}'


LINES = {"json": json_line, "csv": csv_line}


def run(rows: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, line in LINES.items():
            print(f"{f'{kind}, {rows:,} lines':52}{'seconds':>9}{'times clean':>13}")
            measured = [
                (case, write(folder / f"{place}.{kind}", case, line, rows)) for place, case in enumerate(cases())
            ]
            best = measure(kind, measured, rows)
            for case, seconds in zip(cases(), best, strict=True):
                print(f"  {case.label:50}{seconds:9.2f}{seconds / best[0]:13.2f}", flush=True)
            for _, path in measured:
                path.unlink()
        print(f"{f'{BAD_LINES:,} lines, each of them bad':52}{'seconds':>9}")
        for kind, line in LINES.items():
            for case in all_bad():
                show_bad(folder, kind, case, line)
        show_bad(folder, "csv", Case("a line end in a quoted value", iso), quoted_line)


def show_bad(folder: Path, kind: str, case: Case, line: Callable[[Case, int], str]) -> None:
    path = write(folder / f"bad.{kind}", case, line, BAD_LINES)
    seconds, good, bad = read(kind, case, path)
    assert good == 0, f"{kind}: {case.label}: {good} rows"
    assert bad >= BAD_LINES
    print(f"  {f'{kind}: {case.label}':50}{seconds:9.2f}", flush=True)


def write(path: Path, case: Case, line: Callable[[Case, int], str], rows: int) -> Path:
    with path.open("w", encoding="utf-8") as file:
        if path.suffix == ".csv":
            file.write(",".join(SCHEMA.names) + "\n")
        file.writelines(f"{line(case, number)}\n" for number in range(rows))
    return path


def measure(kind: str, measured: Sequence[tuple[Case, Path]], rows: int) -> list[float]:
    """Seconds of CPU for each case, the best of all rounds."""
    rounds = []
    for _ in range(ROUNDS):
        seconds = []
        for case, path in measured:
            taken, good, bad = read(kind, case, path)
            broken = sum(map(case.is_broken, range(rows)))
            assert (good, bad) == (rows - broken, broken), f"{kind}: {case.label}: {good} rows, {bad} bad lines"
            seconds.append(taken)
        rounds.append(seconds)
    return [min(each) for each in zip(*rounds, strict=True)]


def read(kind: str, case: Case, path: Path) -> tuple[float, int, int]:
    """Seconds of CPU, good rows and bad lines."""
    choice = chosen(kind, case.settings)
    bad: list[BadRow] = []
    begun = time.process_time()
    reader = choice.files().reader(
        choice.settings, LocalFileSystem(), schema=SCHEMA, declared=SCHEMA, batch_rows=BATCH_ROWS, on_bad=bad.append
    )
    good = sum(batch.num_rows for batch, _ in reader.read(str(path), WHOLE_FILE, 0) if batch is not None)
    return time.process_time() - begun, good, len(bad)


def chosen(kind: str, settings: dict[str, Any]) -> FormatChoice:
    return read_choice(json_format.ParseDict({"name": kind, **settings}, struct_pb2.Value())).resolve()
