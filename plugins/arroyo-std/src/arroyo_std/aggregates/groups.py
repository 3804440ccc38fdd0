"""Which rows belong together: dense group numbers, and the kernels that reduce a column by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.state import one_chunk
from arroyo_std.columns import normal_type

Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.integer[Any]]

#: Integers are numbered by a table if they span no more than this, or than there are of them.
_TABLE_SIZE = 1 << 16

#: Runs of equal values are numbered instead of values if they are so long on average.
_ROWS_PER_RUN = 8

#: Pairs are numbered by a table of all that there could be, if it has no more than so many places for each row.
_PAIRS_PER_ROW = 16

_NUMPY_KERNELS = {"min": np.fmin, "max": np.fmax, "sum": np.add}


@dataclass(frozen=True, slots=True)
class Kernel:
    """One of pyarrow's grouped kernels over a column; `count_all` needs no column."""

    name: str
    values: pa.Array | None = None


class Groups:
    """Rows with their groups: `codes[i]` is the group of row i, from 0 to `count - 1`.

    A group may be without rows after `where`; kernels give null for it, and counts 0.
    """

    def __init__(self, codes: Codes | None, count: int, *, has_empty: bool = False) -> None:
        self._codes = codes
        self.count = count
        self._has_empty = has_empty
        self._first_rows: Codes | None = None

    @property
    def codes(self) -> Codes:
        if self._codes is None:
            self._codes = self._make_codes()
        return self._codes

    def _make_codes(self) -> Codes:
        raise NotImplementedError(f"{type(self).__name__} was made without codes")

    @classmethod
    def of_columns(cls, columns: Sequence[Any], rows: int) -> Groups:
        """Group rows by equal values of arrays or chunked columns, numbered by first appearance.

        Null equals null, NaN equals NaN, and -0.0 equals 0.0.
        """
        if rows == 0:
            return cls(np.empty(0, dtype=np.int64), 0)
        if len(columns) > 1:
            found = _group_runs([_plain_integers(one_chunk(column)) for column in columns], rows)
            if found is not None:
                return found
        codes, count = np.zeros(rows, dtype=np.int64), 1
        for column in columns:
            others, size = encode_values(column)
            codes, count = (others, size) if count == 1 else combine_codes(codes, others, size)
        return cls(codes, count)

    @classmethod
    def of_pairs(cls, majors: Codes, minors: Codes, minor_count: int) -> Groups:
        """Group rows by two numbers from 0 on; fast where both are small. Groups have no particular order."""
        if not len(majors):
            return cls(np.empty(0, dtype=np.int64), 0)
        span = (int(majors.max()) + 1) * minor_count
        if span > _TABLE_SIZE + _PAIRS_PER_ROW * len(majors):
            # Numbered first: as they are, their product may be too large.
            return cls(*combine_codes(_encode_runs(majors)[0], minors, minor_count))
        return NumberedGroups(majors * minor_count + minors, span)

    @classmethod
    def of_sorted_starts(cls, starts: Mask) -> Groups:
        """Consecutive rows; a group begins wherever `starts` is true, and at the first row."""
        codes = np.cumsum(starts, dtype=np.int64)
        codes -= codes[0] if len(codes) else 0
        return cls(codes, int(codes[-1]) + 1 if len(codes) else 0)

    def first_rows(self) -> Codes:
        """The number of the first row of each group; every group must have one."""
        if self._first_rows is None:
            self._first_rows = _first_places(self.codes, self.count)
        return self._first_rows

    def sizes(self) -> Codes:
        return np.bincount(self.codes, minlength=self.count).astype(np.int64, copy=False)

    def where(self, mask: Mask) -> Groups:
        """Only the rows for which `mask` is true; all groups stay."""
        return Groups(self.codes[mask], self.count, has_empty=True)

    def run(self, kernels: Sequence[Kernel]) -> list[pa.Array]:
        """The result of each kernel, one value per group, in one pass over the rows for most of them."""
        results = [self._fast(kernel) for kernel in kernels]
        slow = [place for place, result in enumerate(results) if result is None]
        if slow:
            for place, result in zip(slow, self._group_by([kernels[place] for place in slow]), strict=True):
                results[place] = result
        return results

    def _fast(self, kernel: Kernel) -> pa.Array | None:
        """By numpy, which is several times as fast, where no nulls and no empty groups get in the way."""
        values = kernel.values
        if values is None:
            return pa.array(self.sizes())
        if values.null_count or self._has_empty or self.count == 0:
            return None
        if kernel.name == "count":
            return pa.array(self.sizes())
        ufunc = _NUMPY_KERNELS.get(kernel.name)
        is_number = (
            pa.types.is_integer(values.type) or pa.types.is_float32(values.type) or pa.types.is_float64(values.type)
        )
        if ufunc is None or not is_number:
            return None
        numbers = values.to_numpy()
        if kernel.name == "sum":
            is_float = pa.types.is_floating(values.type)
            kind = np.float64 if is_float else np.uint64 if pa.types.is_unsigned_integer(values.type) else np.int64
            out = np.zeros(self.count, dtype=kind)
            np.add.at(out, self.codes, numbers.astype(kind, copy=False))
        else:
            out = numbers[self.first_rows()]
            ufunc.at(out, self.codes, numbers)
        return pa.array(out)

    def _group_by(self, kernels: Sequence[Kernel]) -> list[pa.Array]:
        names = [f"c{place}" for place in range(len(kernels))]
        columns = [pa.array(self.codes), *(kernel.values for kernel in kernels)]
        table = pa.Table.from_arrays(columns, names=["g", *names])
        wanted = [(name, kernel.name) for name, kernel in zip(names, kernels, strict=True)]
        found = table.group_by("g", use_threads=False).aggregate(wanted)
        order = self._place_of(found.column("g").to_numpy())
        results = []
        for name, kernel in wanted:
            result = found.column(f"{name}_{kernel}").combine_chunks()
            result = result if order is None else result.take(order)
            results.append(pc.fill_null(result, 0) if kernel == "count" else result)
        return results

    def _place_of(self, found: Codes) -> pa.Array | None:
        """Where each group is among the groups found; None if they are all there in order."""
        if len(found) == self.count and bool((found == np.arange(self.count)).all()):
            return None
        places = np.full(self.count, -1, dtype=np.int64)
        places[found] = np.arange(len(found))
        return pa.array(places, mask=places < 0)


class NumberedGroups(Groups):
    """Groups of rows with equal numbers, in the order of these numbers, all below `span`, which is the size of a table.

    The codes of rows are made when somebody asks for them: counts do not need them.
    """

    def __init__(self, numbers: Codes, span: int) -> None:
        self._row_numbers = numbers
        self._span = span
        self._sizes: Codes | None = None
        if span <= len(numbers):
            sizes = np.bincount(numbers, minlength=span)
            present = np.flatnonzero(sizes)
            self._sizes = sizes[present]
        else:
            # A table that is mostly empty is searched faster if it is small.
            is_there = np.zeros(span, dtype=np.bool_)
            is_there[numbers] = True
            present = np.flatnonzero(is_there)
        #: Of each group.
        self.numbers: Codes = present
        super().__init__(None, len(present))

    def first_rows(self) -> Codes:
        if self._first_rows is None:
            self._first_rows = _first_places(self._row_numbers, self._span)[self.numbers]
        return self._first_rows

    def sizes(self) -> Codes:
        if self._sizes is None:
            self._sizes = super().sizes()
        return self._sizes

    def _make_codes(self) -> Codes:
        # Only places that are asked for are written.
        codes = np.empty(self._span, dtype=np.int64)
        codes[self.numbers] = np.arange(self.count)
        found: Codes = codes[self._row_numbers]
        return found


def _group_runs(columns: Sequence[Integers | None], rows: int) -> Groups | None:
    """Groups of rows that mostly stand together, as rows of a window do; None where they do not, or are no integers."""
    is_first = np.zeros(rows, dtype=np.bool_)
    is_first[0] = True
    for values in columns:
        if values is None:
            return None
        is_first[1:] |= values[1:] != values[:-1]
    if int(np.count_nonzero(is_first)) * _ROWS_PER_RUN > rows:
        return None
    starts = np.flatnonzero(is_first)
    runs = Groups.of_columns([pa.array(values[starts]) for values in columns if values is not None], len(starts))
    return Groups(np.repeat(runs.codes, np.diff(starts, append=rows)), runs.count)


def number_values(columns: Sequence[Any], rows: int) -> tuple[Codes, int]:
    """Numbers for the rows, equal where the values are, and a bound of them; not all below it need be there.

    Cheaper than the codes of `Groups.of_columns` where the values are whole numbers that lie close together.
    """
    if len(columns) == 1 and rows:
        values = _plain_integers(one_chunk(columns[0]))
        if values is not None:
            least = values.min()
            span = int(values.max()) - int(least) + 1
            if span <= max(_TABLE_SIZE, rows):
                return _offsets(values, least), span
    groups = Groups.of_columns(columns, rows)
    return groups.codes, groups.count


def encode_values(column: Any) -> tuple[Codes, int]:
    """A number for each value of an array or a chunked column, by first appearance, and how many there are."""
    column = one_chunk(column)
    kind = column.type
    if pa.types.is_struct(kind):
        codes, count = encode_values(column.is_null())
        for field in column.flatten():
            codes, count = combine_codes(codes, *encode_values(field))
        return codes, count
    if pa.types.is_null(kind):
        return np.zeros(len(column), dtype=np.int64), min(len(column), 1)
    values = _plain_integers(column)
    return _encode(canonical(column)) if values is None or not len(values) else _encode_runs(values)


def combine_codes(codes: Codes, others: Codes, others_count: int, *, is_dense: bool = True) -> tuple[Codes, int]:
    """A number for each pair, by first appearance, and how many there are.

    `is_dense` says that `codes` are numbers by first appearance themselves, of which none is left out.
    """
    if others_count == 1 and is_dense:
        return codes, int(codes.max(initial=-1)) + 1
    if not len(codes):
        return codes, 0
    return _encode_runs(codes * others_count + others)


def _plain_integers(column: pa.Array) -> Integers | None:
    """The values of a column of whole numbers or times, if none of them is null."""
    kind = column.type
    if column.null_count or not (pa.types.is_integer(kind) or _is_time(kind)):
        return None
    values: Integers = column.to_numpy() if pa.types.is_integer(kind) else column.view(pa.int64()).to_numpy()
    return values


def _offsets(values: Integers, least: np.integer[Any]) -> Codes:
    """How far values are from the least of them, which is not too far for 64 bits."""
    # The difference of two short integers may not fit in their own type.
    wide = values if values.dtype.itemsize == 8 else values.astype(np.int64)
    return (wide - wide.dtype.type(least)).astype(np.int64, copy=False)


def _is_time(kind: pa.DataType) -> bool:
    """Whether its values are whole numbers of 64 bits."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time64(kind))


def _encode_runs(values: Integers) -> tuple[Codes, int]:
    """As `_encode_integers`; where equal values mostly stand together, as windows and times do, one of each run."""
    is_first = np.empty(len(values), dtype=np.bool_)
    is_first[0] = True
    np.not_equal(values[1:], values[:-1], out=is_first[1:])
    run_count = int(np.count_nonzero(is_first))
    if run_count * _ROWS_PER_RUN > len(values):
        return _encode_integers(values)
    starts = np.flatnonzero(is_first)
    codes, count = _encode_integers(values[starts])
    return np.repeat(codes, np.diff(starts, append=len(values))), count


def _encode(column: pa.Array) -> tuple[Codes, int]:
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def _encode_integers(values: Integers) -> tuple[Codes, int]:
    """As `_encode`; by a table of all values between the least and the greatest where there are few."""
    least = values.min()
    span = int(values.max()) - int(least) + 1
    if span > max(_TABLE_SIZE, len(values)):
        return _encode(pa.array(values))
    offsets = _offsets(values, least)
    first_rows = _first_places(offsets, span)
    present = np.flatnonzero(first_rows >= 0)
    by_appearance = present[np.argsort(first_rows[present])]
    numbers = np.empty(span, dtype=np.int64)
    numbers[by_appearance] = np.arange(len(present))
    codes: Codes = numbers[offsets]
    return codes, len(present)


def _first_places(numbers: Codes, span: int) -> Codes:
    """For each number below `span` where it is first, or -1."""
    places = np.full(span, -1, dtype=np.int64)
    if span == 1:
        places[:] = 0 if len(numbers) else -1
    else:
        # Of several assignments to one place the last remains. Writing is faster by an index without strides.
        places[np.ascontiguousarray(numbers[::-1])] = np.arange(len(numbers) - 1, -1, -1)
    return places


def order_by_code(codes: Codes, count: int) -> Codes:
    """The order that sorts rows by their codes, all less than `count`, and keeps the order within a code."""
    # numpy sorts short integers by radix, in a fraction of the time.
    small = codes.astype(np.uint16) if count <= 1 << 16 else codes
    order: Codes = np.argsort(small, kind="stable")
    return order


def canonical(column: pa.Array) -> pa.Array:
    """The same values in a type that kernels take, with one zero."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return canonical(column.dictionary_decode())
    if pa.types.is_string_view(kind):
        return column.cast(pa.string())
    if pa.types.is_binary_view(kind):
        return column.cast(pa.binary())
    if pa.types.is_float16(kind):
        return canonical(column.cast(pa.float32()))
    if pa.types.is_floating(kind):
        # -0.0 + 0.0 is 0.0; the two are one value, and dictionaries tell them apart.
        return pc.add(column, pa.scalar(0.0, kind))
    if pa.types.is_nested(kind) and normal_type(kind) != kind:
        return column.cast(normal_type(kind))
    return column
