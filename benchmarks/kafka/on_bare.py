"""A bare loop of confluent-kafka: takes messages and decodes them, in as many processes as it has cores."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

import msgspec
import pyarrow.compute as pc
import pyruhvro
from confluent_kafka import Consumer, TopicPartition

from .bid import Bid
from .cases import AVRO_SCHEMA, FETCHING, PARTITIONS
from .tasks import TopicTask, TopicTiming

BATCH = 10_000
#: Processes begin together, so long after they were asked for: most have imported what they need by then.
START_S = 2.0


def _read_json() -> Callable[[list[bytes]], int]:
    decode = msgspec.json.Decoder(Bid).decode
    return lambda values: sum(bid.price for bid in [decode(value) for value in values])


def _read_avro() -> Callable[[list[bytes]], int]:
    return lambda values: int(pc.sum(pyruhvro.deserialize_array(values, AVRO_SCHEMA).column("price")).as_py())


READERS = {"json": _read_json, "avro": _read_avro}


def read(task: TopicTask, index: int, start_at: float) -> tuple[int, int, float, float]:
    """The messages of every so many-th partition: how many, the sum of their prices, from when to when."""
    decode = READERS[task.format]()
    settings = {"bootstrap.servers": task.servers, "group.id": "bare", "enable.auto.commit": False}
    consumer = Consumer({**settings, **FETCHING})
    places = [TopicPartition(task.data, number, 0) for number in range(index, PARTITIONS, task.cores)]
    count = sum(consumer.get_watermark_offsets(place)[1] for place in places)
    rows = prices = 0
    time.sleep(max(0.0, start_at - time.time()))
    begun = time.time()
    consumer.assign(places)
    while rows < count:
        # It waits for as many as are asked for: no more than there are.
        messages = consumer.consume(min(BATCH, count - rows), 1.0)
        values = [message.value() for message in messages if message.error() is None]
        if values:
            prices += decode(values)  # type: ignore[arg-type]
            rows += len(values)
    done = time.time()
    consumer.close()
    return rows, prices, begun, done


def main() -> None:
    task = TopicTask.read(Path(sys.argv[1]))
    with ProcessPoolExecutor(task.cores, mp_context=get_context("spawn")) as pool:
        start_at = time.time() + START_S
        parts = list(pool.map(read, [task] * task.cores, range(task.cores), [start_at] * task.cores))
    TopicTiming(
        job_s=max(done for *_, done in parts) - min(begun for _, _, begun, _ in parts),
        epochs=1,
        rows=sum(rows for rows, *_ in parts),
        price_sum=sum(prices for _, prices, *_ in parts),
        versions={name: version(name) for name in ("msgspec", "pyruhvro")},
    ).write(Path(sys.argv[2]))


if __name__ == "__main__":
    main()
