"""Formats of messages beside the bare libraries: `python -m benchmarks.formats [--rows 500000]`.

`python -m benchmarks.formats odd` reads files with odd and bad lines beside clean ones.

Orders of eight columns, read and written in batches of 10,000; thousand messages for each second of CPU, best of
three. Answers are checked. With a number of their schema in front, messages are read through the framing, too.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import fastavro
import msgspec
import ptars
import pyarrow as pa
import pyruhvro
from arroyo_formats import FormatChoice, find_format
from arroyo_formats.avro.fast import is_fast
from arroyo_formats.avro.schema import parse
from arroyo_formats.protobuf.message_type import message_type
from arroyo_formats.registry import RegisteredSchema, SchemaRegistry, header
from google.protobuf import message_factory

from arroyo_core.api import with_defaults
from benchmarks.formats import odd

BATCH = 10_000
PROTO = """syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Order {
  int64 id = 1;
  int32 customer = 2;
  string product = 3;
  double price = 4;
  bool is_paid = 5;
  google.protobuf.Timestamp placed_at = 6;
  optional string country = 7;
  optional int64 quantity = 8;
}
"""
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "int"},
        {"name": "product", "type": "string"},
        {"name": "price", "type": "double"},
        {"name": "is_paid", "type": "boolean"},
        {"name": "placed_at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "country", "type": ["null", "string"]},
        {"name": "quantity", "type": ["null", "long"]},
    ],
}
#: The same with a decimal, which pyruhvro cannot read.
AVRO_DECIMAL = {
    **AVRO,
    "fields": [
        {**field, "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}}
        if field["name"] == "price"
        else field
        for field in AVRO["fields"]
    ],
}
NUMBER = 7


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.formats", description=__doc__)
    parser.add_argument("case", nargs="?", choices=["messages", "odd"], default="messages")
    parser.add_argument("--rows", type=int, help="500000 messages, or 1000000 lines")
    arguments = parser.parse_args()
    if arguments.case == "odd":
        odd.run(arguments.rows or 1_000_000)
        return
    batches = orders(arguments.rows or 500_000)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "order.proto").write_text(PROTO, encoding="utf-8")
        print(f"{'thousand messages per CPU second':44}{'read':>10}{'write':>10}")
        measure_json(batches)
        measure_avro(batches)
        measure_protobuf(batches, folder / "order.proto")


def orders(rows: int) -> list[pa.RecordBatch]:
    """The same orders each time."""
    numbers = range(rows)
    columns = {
        "id": pa.array(numbers, pa.int64()),
        "customer": pa.array((n * 7919 % 100_000 for n in numbers), pa.int32()),
        "product": pa.array((f"product {n % 5000}" for n in numbers), pa.string()),
        "price": pa.array((n % 10_000 / 4 for n in numbers), pa.float64()),
        "is_paid": pa.array((n % 3 > 0 for n in numbers), pa.bool_()),
        "placed_at": pa.array((1_700_000_000_000_000 + n * 1_000_003 for n in numbers), pa.timestamp("us", "UTC")),
        "country": pa.array((None if n % 10 == 0 else "country" for n in numbers), pa.string()),
        "quantity": pa.array((None if n % 7 == 0 else n % 50 for n in numbers), pa.int64()),
    }
    return pa.table(columns).to_batches(max_chunksize=BATCH)


def measure_json(batches: Sequence[pa.RecordBatch]) -> None:
    choice = chosen("json")
    lots = show_format("json", choice, batches)
    show("  msgspec, dicts", lots, lambda lot: [msgspec.json.decode(message) for message in lot])


def measure_avro(batches: Sequence[pa.RecordBatch]) -> None:
    text = json.dumps(AVRO)
    lots = show_format("avro", chosen("avro", schema=text), batches)
    show_framed("avro, framed", chosen("avro", schema=text, registry={"url": "http://127.0.0.1:1"}), text, "AVRO", lots)
    show(
        "  pyruhvro",
        lots,
        lambda lot: pyruhvro.deserialize_array(lot, text),
        batches,
        lambda batch: pyruhvro.serialize_record_batch(_naive(batch), text, 1),
    )
    schema = fastavro.parse_schema(AVRO)
    show(
        "  fastavro, dicts",
        lots,
        lambda lot: [fastavro.schemaless_reader(io.BytesIO(message), schema, None) for message in lot],
        batches,
        lambda batch: [fastavro.schemaless_writer(io.BytesIO(), schema, row) for row in batch.to_pylist()],
    )
    assert not is_fast(parse(json.dumps(AVRO_DECIMAL)))
    decimals = [
        batch.set_column(3, "price", batch.column(3).cast(pa.decimal128(12, 2)))
        for batch in batches[: len(batches) // 5]
    ]
    show_format("avro, with a decimal", chosen("avro", schema=json.dumps(AVRO_DECIMAL)), decimals)


def _naive(batch: pa.RecordBatch) -> pa.RecordBatch:
    """pyruhvro has no time zones."""
    return batch.set_column(5, "placed_at", batch.column(5).cast(pa.timestamp("us")))


def measure_protobuf(batches: Sequence[pa.RecordBatch], file: Path) -> None:
    choice = chosen("protobuf", schema_file=str(file))
    lots = show_format("protobuf", choice, batches)
    registry = {"url": "http://127.0.0.1:1"}
    framed = chosen("protobuf", schema_file=str(file), registry=registry)
    show_framed("protobuf, framed", framed, PROTO, "PROTOBUF", lots, b"\0")
    descriptor = message_type(choice.settings, None).descriptor
    handler = ptars.HandlerPool([descriptor.file]).get_for_message(descriptor)
    show(
        "  ptars",
        lots,
        handler.list_to_record_batch,
        [handler.list_to_record_batch(lot) for lot in lots],
        handler.record_batch_to_array,
    )
    parsed = message_factory.GetMessageClass(descriptor).FromString
    show("  google.protobuf, messages", lots, lambda lot: [parsed(message) for message in lot])


def chosen(name: str, **settings: Any) -> FormatChoice:
    found = find_format(name)
    made: Any = found.settings_type()
    for key, value in settings.items():
        if isinstance(value, dict):
            getattr(made, key).MergeFrom(type(getattr(made, key))(**value))
        else:
            setattr(made, key, value)
    return FormatChoice(found, with_defaults(made)).resolve()


def show_format(label: str, choice: FormatChoice, batches: Sequence[pa.RecordBatch]) -> list[list[bytes]]:
    """Measure both ways, and give the messages in lots as large as the batches."""
    schema = batches[0].schema
    writer, reader = choice.writer(schema), choice.reader(choice.schema(schema))
    lots = [writer.write(batch).messages.to_pylist() for batch in batches]
    for lot, batch in zip(lots, batches, strict=True):
        assert reader.read(lot).batch.equals(batch), f"{label}: rows come back as they were"
    show(label, lots, reader.read, batches, writer.write)
    return lots


def show_framed(
    label: str, choice: FormatChoice, text: str, kind: str, lots: Sequence[list[bytes]], place: bytes = b""
) -> None:
    """Reading only; the registry's answer is known already, as it is after the first message."""
    client = SchemaRegistry.of(choice.settings.registry)
    client.remember(NUMBER, RegisteredSchema(kind, text))
    framed = [[header(NUMBER) + place + message for message in lot] for lot in lots]
    reader = choice.reader(choice.schema(None))
    assert all(not reader.read(lot).bad for lot in framed)
    show(label, framed, reader.read)


def show(
    label: str,
    lots: Sequence[list[bytes]],
    read: Callable[[list[bytes]], object],
    batches: Sequence[pa.RecordBatch] = (),
    write: Callable[[pa.RecordBatch], object] | None = None,
) -> None:
    count = sum(map(len, lots))
    reading = f"{count / best(read, lots) / 1000:10,.0f}"
    writing = f"{count / best(write, batches) / 1000:10,.0f}" if write is not None else f"{'':10}"
    print(f"{label:44}{reading}{writing}", flush=True)


def best(call: Callable[[Any], object], items: Iterable[Any]) -> float:
    """Seconds of CPU for all items, in the best of three rounds."""
    rounds = []
    for _ in range(3):
        begun = time.process_time()
        for item in items:
            call(item)
        rounds.append(time.process_time() - begun)
    return min(rounds)


if __name__ == "__main__":
    main()
