"""What the author of a plugin gives to the kit: for each operator a config and rows to try it with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from arroyo_core.api import ArroyoSchema

#: The config of a node as it is written in YAML, or a function that makes it in an empty folder of its own.
Config: TypeAlias = Mapping[str, Any] | Callable[[Path], Mapping[str, Any]]
Rows: TypeAlias = pa.Table | pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Stream:
    """The rows of one input, in order. A dozen will do; the kit cuts them into batches itself.

    `watermarks` gives event times in microseconds by the number of rows that come before them, `{4: 1_000_000}`.
    By default there are two, which make no row late.
    """

    rows: Rows
    timestamp_column: str | None = None
    key_columns: tuple[str, ...] | None = None
    watermarks: Mapping[int, int] | None = None

    @property
    def schema(self) -> ArroyoSchema:
        return ArroyoSchema(self.rows.schema, self.timestamp_column, self.key_columns)

    @property
    def batch(self) -> pa.RecordBatch:
        """All rows as one batch."""
        if isinstance(self.rows, pa.RecordBatch):
            return self.rows
        batches = self.rows.combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=self.rows.schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    #: What the case is called in the names of tests; the operator's name by default.
    id: str = ""
    #: Columns of the output that may differ between runs, such as a time of arrival.
    ignore: Collection[str] = ()
    #: Checks that do not apply, each with the reason; they are reported as skipped.
    skip: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OperatorCase(_Case):
    """An operator that is not a source. `inputs` has one item per input: its rows, or a `Stream`.

    With `is_ordered` the order of the rows counts too, at parallelism 1. For output in which a row replaces the one
    before it, `latest_by` names the columns that make its key: only the last row of each key is compared. `removed_by`
    is the column that is true where the last row says that the key is gone, which is as if it had never been there.
    """

    operator: str
    config: Config = field(default_factory=dict)
    inputs: Sequence[Stream | Rows] = ()
    is_ordered: bool = False
    latest_by: Sequence[str] = ()
    removed_by: str = ""

    @property
    def streams(self) -> list[Stream]:
        return [each if isinstance(each, Stream) else Stream(each) for each in self.inputs]


@dataclass(frozen=True, slots=True)
class SinkCase(OperatorCase):
    """A sink. `visible(folder)` reads what others see of its output; `config` is a function of that folder.

    Every run has an empty folder of its own. With `latest_by`, the last row of each key is expected instead of all.
    """

    visible: Callable[[Path], Rows] | None = None


@dataclass(frozen=True, slots=True)
class SourceCase(_Case):
    """A source whose data ends.

    One that `idles` may run out of rows before that, and must say so; its epochs end where it waits.
    """

    operator: str
    config: Config = field(default_factory=dict)
    idles: bool = False


@dataclass(frozen=True, slots=True)
class FormatCase(_Case):
    """A format: what `sink` writes `source` must read, row for row. Each is an operator's name and its config.

    `rows` should have a column of every type that the format can hold.
    """

    name: str
    sink: tuple[str, Config]
    source: tuple[str, Config]
    rows: Rows


@dataclass(frozen=True, slots=True)
class StorageCase(_Case):
    """A place for checkpoints. `url` is what `checkpoint.url` would be, or a function of an empty folder.

    Everything is written below the URL, in a folder of a random name, and deleted again.
    """

    name: str
    url: str | Callable[[Path], str]
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LookupCase(_Case):
    """A table that rows are looked up in. `rows` are all that it has; `keys`, columns that it may be asked by.

    A table that is read as a whole needs no `keys`.
    """

    lookup: str
    config: Config
    rows: Rows
    keys: Sequence[str] = ()


Case = OperatorCase | SourceCase | FormatCase | StorageCase | LookupCase


def case_name(case: Case) -> str:
    """What the case is called in messages and in the names of tests."""
    match case:
        case FormatCase() | StorageCase():
            return case.id or case.name
        case LookupCase():
            return case.id or case.lookup
    return case.id or case.operator
