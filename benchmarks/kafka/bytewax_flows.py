"""The dataflows of Bytewax: `benchmarks.kafka.bytewax_flows:flow('task.json')` for `python -m bytewax.run`."""

from __future__ import annotations

import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import bytewax.operators as op
import fastavro
import msgspec
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource, KafkaSourceMessage
from bytewax.dataflow import Dataflow, Stream
from bytewax.outputs import DynamicSink, StatelessSinkPartition

from ..nexmark.bytewax_flows import Row, hot_items
from .bid import Bid
from .cases import AVRO_SCHEMA, FETCHING, NEEDED
from .tasks import TopicTask

BATCH = 10_000


def _read_json() -> Callable[[bytes], Any]:
    return msgspec.json.Decoder(Bid).decode


def _read_avro() -> Callable[[bytes], Any]:
    schema = fastavro.parse_schema(msgspec.json.decode(AVRO_SCHEMA))

    def read(value: bytes) -> Bid:
        row: Any = fastavro.schemaless_reader(BytesIO(value), schema, None)
        return Bid(row["auction"], row["bidder"], row["price"], row["date_time"], row["extra"])

    return read


class Counted(StatelessSinkPartition[Any]):
    """Forgets rows; how many is the name of a file at the end."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._rows = folder, 0

    def write_batch(self, items: list[Any]) -> None:
        self._rows += len(items)

    def close(self) -> None:
        (self._folder / f"{os.getpid()}.rows").write_text(str(self._rows))


class Nothing(DynamicSink[Any]):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Counted:
        return Counted(self._folder)


def _q1(bid: Bid) -> Row:
    euros, rest = divmod(bid.price * 908, 1000)
    return bid.auction, bid.bidder, f"{euros}.{rest:03}", bid.date_time, bid.extra


def flow(task_file: str) -> Dataflow:
    task = TopicTask.read(Path(task_file))
    made = Dataflow(f"bench_{task.case}")
    source = KafkaSource([task.servers], [task.data], tail=False, batch_size=BATCH, add_config=FETCHING)
    decode = {"json": _read_json, "avro": _read_avro}[task.format]()

    def read(message: KafkaSourceMessage[Any, Any]) -> Any:
        return decode(message.value)

    bids = op.map("decoded", op.input("bids", made, source), read)
    names: tuple[str, ...] = tuple(NEEDED["q1"])
    rows: Stream[Row]
    if task.case == "q5":
        hot = hot_items(op.map("needed", bids, lambda bid: (bid.auction, bid.date_time)))
        rows = op.map("items", hot, lambda item: item[1])
        names = ("auction", "num", "window_start", "window_end")
    else:
        rows = op.map("euros", bids, _q1)
    if not task.answer:
        op.output("nothing", rows, Nothing(Path(task.scratch)))
        return made

    def message(row: Row) -> KafkaSinkMessage[None, bytes]:
        return KafkaSinkMessage(None, msgspec.json.encode(dict(zip(names, row, strict=True))))

    op.output("topic", op.map("messages", rows, message), KafkaSink([task.servers], task.answer))
    return made
