"""What rows of a Parquet file weigh in memory, at most: a text that is stored once may be in all of them.

A file of kilobytes may hold gigabytes so, and how much a batch takes has to be known before it is decoded. Footers say
what pages weigh, and not what they are decoded to. No text is longer than the dictionary that it is in, whose page
says what it unpacks to. Most dictionaries are small; a large one of a local file is looked through.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from arroyo_formats.files import DamagedFileError, is_damage, is_local, open_for_reading
from arroyo_formats.limits import ROW_GROUP_BYTES

#: What a value takes at least, decoded.
_WIDTHS: Mapping[str, int] = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 8}
_TEXT = "BYTE_ARRAY"
#: What rows take together that all have the longest text.
TEXT_BYTES = 256 * 2**20
#: Dictionaries with no more than this have no text that is worth a look.
SMALL_TEXT_BYTES = 2**12
#: The same where that text may be shorter: to look at it would take more requests.
REMOTE_TEXT_BYTES = 2**30
#: Of an encoding that repeats the beginnings of texts, no page tells how long they get.
_DELTA_TEXT = "DELTA_BYTE_ARRAY"
#: Those of honest files are taken to be no longer: they would be read a few rows at a time.
_DELTA_TEXT_BYTES = 2**18
_HEADER_BYTES = 64
#: What is read at a time of a file whose dictionaries are looked at.
LOOK_BYTES = 2**18
_DICTIONARY_PAGE = 2
#: Types of the compact protocol of Thrift.
_TRUE, _FALSE, _INT32, _STRUCT = 1, 2, 5, 12


@dataclass(frozen=True, slots=True)
class RowSizes:
    """How many rows of some row groups to decode at a time."""

    #: Those that have about as many bytes as asked for, as the footer says.
    rows: int
    #: Those that take no more than memory has, if all texts are as long as any can be.
    safe_rows: int


@dataclass(frozen=True, slots=True)
class _Group:
    """A row group, with the chunks of the wanted columns that hold texts."""

    number: int
    bytes_per_row: float
    texts: Sequence[Any]
    texts_per_row: float

    @property
    def text_bytes(self) -> int:
        """What no text can be longer than, if the footer tells the truth."""
        return sum(leaf.total_uncompressed_size for leaf in self.texts)


class Source(Protocol):
    """Where the bytes of a file are."""

    @property
    def name(self) -> str:
        """For messages."""

    @property
    def is_near(self) -> bool:
        """Whether reading a little costs little."""

    def starts(self, places: Sequence[int]) -> Sequence[bytes]:
        """Some bytes from each of these places on."""

    def reopen(self) -> Any:
        """The file once more, for Arrow."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file of a filesystem of fsspec."""

    fs: Any
    name: str

    @property
    def is_near(self) -> bool:
        return is_local(self.fs)

    def starts(self, places: Sequence[int]) -> Sequence[bytes]:
        if not self.is_near:
            # At the same time: each of them is a request.
            ends = [place + _HEADER_BYTES for place in places]
            return list(self.fs.cat_ranges([self.name] * len(places), list(places), ends))
        found = []
        with open_for_reading(self.fs, self.name) as file:
            for place in places:
                file.seek(place)
                found.append(file.read(_HEADER_BYTES))
        return found

    def reopen(self) -> Any:
        return self.name


@dataclass(frozen=True, slots=True)
class BytesSource:
    """A file in memory."""

    data: bytes
    name: str = "message"
    is_near: bool = True

    def starts(self, places: Sequence[int]) -> Sequence[bytes]:
        return [self.data[place : place + _HEADER_BYTES] for place in places]

    def reopen(self) -> Any:
        return pa.BufferReader(self.data)


def row_sizes(
    source: Source, file: pq.ParquetFile, groups: range, columns: Sequence[str], *, max_bytes: int, max_rows: int
) -> RowSizes:
    """For rows of these columns, in the row group with the widest ones; a batch should have no more than the limits.

    Raises `DamagedFileError` for a row group that is too large as a whole.
    """
    found = [_group(file, source.name, number, set(columns)) for number in groups]
    widest = max((group.bytes_per_row for group in found), default=0.0)
    rows = min(max_rows, max(1, int(max_bytes / widest))) if widest else max_rows
    allowed = TEXT_BYTES if source.is_near else REMOTE_TEXT_BYTES
    safe_rows = rows
    if not source.is_near and all(group.text_bytes * group.texts_per_row * rows <= allowed for group in found):
        return RowSizes(rows, rows)
    starts = [_start(leaf) for group in found for leaf in group.texts]
    headers = iter(source.starts(starts) if starts else ())
    for group in found:
        longest = {leaf.path_in_schema: _longest_text(leaf, next(headers)) for leaf in group.texts}
        if source.is_near and sum(longest.values()) * group.texts_per_row * rows > allowed:
            doubtful = [name for name, size in longest.items() if size > SMALL_TEXT_BYTES]
            longest |= _look_at_dictionaries(source, file, group, doubtful)
        if any(longest.values()):
            safe_rows = min(safe_rows, max(1, int(allowed / (sum(longest.values()) * group.texts_per_row))))
    return RowSizes(rows, safe_rows)


def _group(file: pq.ParquetFile, path: str, number: int, columns: set[str]) -> _Group:
    group = file.metadata.row_group(number)
    leaves = [group.column(index) for index in range(group.num_columns)]
    leaves = [leaf for leaf in leaves if _is_of(leaf.path_in_schema, columns)]
    size = sum(max(leaf.total_uncompressed_size, leaf.num_values * _width(leaf)) for leaf in leaves)
    problem = ROW_GROUP_BYTES.problem(size)
    if problem is not None:
        raise DamagedFileError(path, f"row group {number}: {problem}")
    rows = max(1, group.num_rows)
    texts = [leaf for leaf in leaves if leaf.physical_type == _TEXT]
    return _Group(number, size / rows, texts, max((leaf.num_values / rows for leaf in texts), default=0.0))


def _look_at_dictionaries(
    source: Source, file: pq.ParquetFile, group: _Group, names: Sequence[str]
) -> Mapping[str, int]:
    """The longest text of each of these chunks, as its dictionary has it; of none where it is damaged."""
    looked = [leaf.path_in_schema for leaf in group.texts if leaf.path_in_schema in names and not _has_deltas(leaf)]
    try:
        reopened = source.reopen()
        with pq.ParquetFile(reopened, metadata=file.metadata, read_dictionary=looked, buffer_size=LOOK_BYTES) as look:
            return {name: _longest_of(look, group.number, name) for name in looked}
    except (pa.ArrowException, OSError) as error:
        if not is_damage(error):
            raise
        # Whoever reads as far finds the same.
        return {}


def _longest_of(look: pq.ParquetFile, group: int, name: str) -> int:
    row = next(look.iter_batches(batch_size=1, row_groups=[group], columns=[name]), None)
    found = [] if row is None else [each for column in row.columns for each in _dictionaries(column)]
    return sum(int(pc.max(pc.binary_length(each)).as_py() or 0) for each in found)


def _dictionaries(values: pa.Array) -> Iterator[pa.Array]:
    kind = values.type
    if pa.types.is_dictionary(kind):
        yield values.dictionary
    elif pa.types.is_struct(kind):
        for index in range(kind.num_fields):
            yield from _dictionaries(values.field(index))
    elif pa.types.is_map(kind):
        yield from _dictionaries(values.keys)
        yield from _dictionaries(values.items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from _dictionaries(values.values)


def _has_deltas(leaf: Any) -> bool:
    return _DELTA_TEXT in leaf.encodings


def _is_of(path: str, columns: set[str]) -> bool:
    """Whether a leaf belongs to one of the columns; a name may have dots of its own."""
    return path in columns or path.partition(".")[0] in columns


def _width(leaf: Any) -> int:
    return _WIDTHS.get(str(leaf.physical_type), 4 if leaf.physical_type == _TEXT else 1)


def _start(leaf: Any) -> int:
    start = leaf.data_page_offset
    if leaf.has_dictionary_page:
        start = min(start, leaf.dictionary_page_offset)
    return max(0, int(start))


def _longest_text(leaf: Any, header: bytes) -> int:
    if _has_deltas(leaf):
        return min(int(leaf.total_uncompressed_size), _DELTA_TEXT_BYTES)
    kind, unpacked, values = page_header(header)
    # Each text has its length before it. Without a dictionary a text is stored as often as it is there.
    return max(0, unpacked - 4 * values) if kind == _DICTIONARY_PAGE else 0


def page_header(data: bytes) -> tuple[int, int, int]:
    """Of a page: its kind, what it unpacks to, and for dictionaries how many values it has; zeros for other bytes."""
    try:
        return _page_header(data)
    except IndexError:
        return 0, 0, 0


def _page_header(data: bytes) -> tuple[int, int, int]:
    kind = unpacked = field = at = 0
    while data[at]:
        field, form = field + (data[at] >> 4), data[at] & 0x0F
        at += 1
        if form == _STRUCT:
            # Only the header of the dictionary comes before all that matters; the number of values is its first field.
            values = _number(data, at + 1)[0] if data[at] == (1 << 4 | _INT32) else 0
            return kind, unpacked, max(0, values)
        if form == _INT32:
            number, at = _number(data, at)
            kind, unpacked = (number if field == 1 else kind), (number if field == 2 else unpacked)
        elif form not in (_TRUE, _FALSE):
            break
    return kind, unpacked, 0


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), at
