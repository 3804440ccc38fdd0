"""Avro's object container files: a header with the schema, then blocks of values, each compressed for itself."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa

from arroyo_core.api.limits import SCHEMA_BYTES
from arroyo_formats.avro.plain import read_long
from arroyo_formats.limits import AVRO_BLOCK_BYTES, AVRO_BLOCK_VALUES
from arroyo_formats.registry.framing import zigzag

MAGIC = b"Obj\x01"
SYNC_BYTES = 16
SCHEMA, CODEC = "avro.schema", "avro.codec"
_MAX_NUMBER_BYTES = 10
#: How the files say what we call otherwise.
CODECS: Mapping[str, str] = {"none": "null", "deflate": "deflate", "snappy": "snappy", "zstd": "zstandard"}


class ContainerError(ValueError):
    """Bytes that are no container file, or a damaged one."""


@dataclass(frozen=True, slots=True)
class Header:
    """What stands before the first block."""

    schema: str
    codec: str
    sync: bytes
    #: Where the first block begins.
    size: int


@dataclass(frozen=True, slots=True)
class Block:
    """One block, where it begins, and how many values it says that it has."""

    start: int
    count: int
    #: Where its data is, compressed.
    data_start: int
    data_bytes: int

    @property
    def end(self) -> int:
        return self.data_start + self.data_bytes + SYNC_BYTES


def read_header(file: BinaryIO) -> Header:
    """The header of a file that is at its beginning; raises `ContainerError`."""
    if _exactly(file, len(MAGIC)) != MAGIC:
        raise ContainerError("not an Avro file")
    found: dict[str, bytes] = {}
    count = _number(file)
    while count:
        if count < 0:
            _number(file)
            count = -count
        for _ in range(count):
            key = _text(file).decode("utf-8", "replace")
            found[key] = _text(file)
        count = _number(file)
    sync = _exactly(file, SYNC_BYTES)
    if SCHEMA not in found:
        raise ContainerError("its header has no schema")
    codec = found.get(CODEC, b"null").decode("utf-8", "replace")
    return Header(found[SCHEMA].decode("utf-8", "replace"), codec, sync, file.tell())


def blocks(file: BinaryIO, header: Header, start: int, stop: int | None) -> Iterator[Block]:
    """The blocks from one position to another, without their data; the caller may move the file in between."""
    at = start
    while stop is None or at < stop:
        file.seek(at)
        if not file.read(1):
            return
        file.seek(at)
        count, size = _number(file), _number(file)
        if count < 0 or size < 0:
            raise ContainerError(f"a block of {count} values in {size} bytes at byte {at}")
        # A block is held in memory as a whole.
        problem = AVRO_BLOCK_VALUES.problem(count) or AVRO_BLOCK_BYTES.problem(size)
        if problem is not None:
            raise ContainerError(f"the block at byte {at}: {problem}")
        block = Block(at, count, file.tell(), size)
        yield block
        file.seek(block.end - SYNC_BYTES)
        if _exactly(file, SYNC_BYTES) != header.sync:
            raise ContainerError(f"the block at byte {at} is damaged")
        at = block.end


def read_block(file: BinaryIO, header: Header, block: Block) -> bytes:
    """The values of a block, one after the other; raises `ContainerError`."""
    file.seek(block.data_start)
    data = _exactly(file, block.data_bytes)
    try:
        return _decompress(header.codec, data)
    except (zlib.error, lzma.LZMAError, OSError, EOFError, pa.ArrowException) as error:
        raise ContainerError(f"the block at byte {block.start} is damaged: {error}") from error


def header_bytes(schema: str, compression: str, sync: bytes) -> bytes:
    """The header of a file that is written."""
    entries = {SCHEMA: schema.encode(), CODEC: CODECS[compression].encode()}
    written = b"".join(_sized(key.encode()) + _sized(value) for key, value in entries.items())
    return MAGIC + zigzag(len(entries)) + written + zigzag(0) + sync


def block_bytes(count: int, data: bytes, compression: str, sync: bytes) -> bytes:
    """A block of so many values."""
    compressed = _compress(compression, data)
    return zigzag(count) + zigzag(len(compressed)) + compressed + sync


def _compress(compression: str, data: bytes) -> bytes:
    match compression:
        case "none":
            return data
        case "deflate":
            packer = zlib.compressobj(wbits=-15)
            return packer.compress(data) + packer.flush()
        case "snappy":
            return bytes(pa.compress(data, "snappy", asbytes=True)) + zlib.crc32(data).to_bytes(4, "big")
        case _:
            return bytes(pa.compress(data, "zstd", asbytes=True))


def _decompress(codec: str, data: bytes) -> bytes:
    most = AVRO_BLOCK_BYTES.value
    match codec:
        case "null":
            return data
        case "deflate":
            unpacker = zlib.decompressobj(wbits=-15)
            return _whole(unpacker.decompress(data, most), unpacker.eof)
        case "bzip2":
            bz = bz2.BZ2Decompressor()
            return _whole(bz.decompress(data, most), bz.eof)
        case "xz":
            xz = lzma.LZMADecompressor()
            return _whole(xz.decompress(data, most), xz.eof)
        case "zstandard":
            with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
                found: bytes = stream.read(most + 1)
            return _whole(found, len(found) <= most)
        case "snappy":
            return _unsnap(data)
    raise ContainerError(f"it is compressed with {codec!r}, which is not known")


def _unsnap(data: bytes) -> bytes:
    """Snappy begins with the size of what it holds, and Avro puts a checksum behind it."""
    size = shift = 0
    for byte in data[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    problem = AVRO_BLOCK_BYTES.problem(size)
    if problem is not None:
        raise ContainerError(problem)
    found = bytes(pa.decompress(data[:-4], size, "snappy", asbytes=True))
    if zlib.crc32(found).to_bytes(4, "big") != data[-4:]:
        raise ContainerError("the checksum of a block is wrong")
    return found


def _whole(data: bytes, is_whole: bool) -> bytes:
    if not is_whole:
        raise ContainerError(f"a block is cut off, or too large: {AVRO_BLOCK_BYTES.hint}")
    return data


def _sized(data: bytes) -> bytes:
    return zigzag(len(data)) + data


def _number(file: BinaryIO) -> int:
    found = b""
    while len(found) < _MAX_NUMBER_BYTES:
        found += _exactly(file, 1)
        if found[-1] < 0x80:
            return read_long(found, 0)[0]
    raise ContainerError("a number of more than ten bytes")


def _text(file: BinaryIO) -> bytes:
    size = _number(file)
    if not 0 <= size <= SCHEMA_BYTES.value:
        raise ContainerError(f"a length of {size} in the header: {SCHEMA_BYTES.hint}")
    return _exactly(file, size)


def _exactly(file: BinaryIO, size: int) -> bytes:
    found = file.read(size)
    if len(found) < size:
        raise ContainerError("the file ends within it")
    return found
