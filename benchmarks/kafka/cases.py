"""What is asked, and of whom; only the standard library is imported here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PINS = Path(__file__).resolve().parent
PARTITIONS = 4
FORMATS = ("json", "avro")
#: For all consumers on librdkafka, as `kafka.source` has it: by default it rests for a second whenever enough is
#: fetched ahead, and who reads a topic from its beginning waits for most of the time.
FETCHING = {"fetch.queue.backoff.ms": "10"}
#: How often ours makes an epoch: where latency is measured, where a topic is written, and where rows are forgotten. An
#: epoch is committed while the next one runs, so that what writes has more of them.
LATENCY_INTERVAL = "250ms"
WRITING_INTERVAL = "1s"
INTERVAL = "10s"

#: The columns of a message with their types in pipelines: about 190 bytes of JSON, 90 of Avro.
COLUMNS: Mapping[str, str] = {
    "auction": "int64",
    "bidder": "int64",
    "price": "int64",
    "channel": "string",
    "date_time": "timestamp",
    "extra": "string",
}
#: Only where latency is measured: when the message was produced.
SENT_US = "sent_us"
#: By query: the columns that it needs.
NEEDED: Mapping[str, Sequence[str]] = {
    "q1": ("auction", "bidder", "price", "date_time", "extra"),
    "q5": ("auction", "date_time"),
}
NEEDED = {**NEEDED, "latency": (*NEEDED["q1"], SENT_US)}

_AVRO_TYPES = {
    "int64": "long",
    "string": "string",
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
}
AVRO_SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Bid",
        "fields": [{"name": name, "type": _AVRO_TYPES[kind]} for name, kind in COLUMNS.items()],
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A query over one topic. Where it `is_written`, its answer goes to a topic; else rows are forgotten."""

    query: str
    format: str
    is_written: bool = False

    @property
    def name(self) -> str:
        return f"{self.query}{'_topic' if self.query == 'q1' and self.is_written else ''}_{self.format}"

    @property
    def title(self) -> str:
        return f"{_TITLES[self.query]}{'a topic' if self.is_written else 'nothing'}, {self.format.upper()}"


#: Only decode, which is all that the bare loop does.
DECODE = "decode"
_TITLES = {
    "q1": "q1, currency conversion, into ",
    "q5": "q5, hot items of sliding windows, into ",
    DECODE: "only decode, into ",
}

CASES = [
    *(Case(query="q1", format=format) for format in FORMATS),
    *(Case(query="q1", format=format, is_written=True) for format in FORMATS),
    *(Case(query="q5", format=format, is_written=True) for format in FORMATS),
    *(Case(query=DECODE, format=format) for format in FORMATS),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Who is asked; `environment` is the one of its own that it needs, if any."""

    name: str
    title: str
    #: The module of this package that runs it.
    script: str
    cores: int = 2
    environment: str | None = None
    #: How it was used.
    note: str

    @property
    def module(self) -> str:
        return f"{__package__}.{self.script}"

    def is_asked(self, case: Case) -> bool:
        return (case.query == DECODE) == (self.script == "on_bare")


#: Older than the Spark that ours runs on: Maven Central, as it can be reached from where this was written, has all jars
#: of the Kafka source (its own, the token provider, Avro) of no later version.
SPARK_OF_PEER = (PINS / "requirements-structured_streaming_kafka.txt").read_text().strip().removeprefix("pyspark==")

OURS, PEER, BARE, BARE_TWO = "arroyo", "structured_streaming", "bare", "bare_two"
ENGINES = {
    engine.name: engine
    for engine in (
        Engine(
            name=OURS,
            title="Arroyo on Spark",
            script="on_arroyo",
            note=f"`kafka.source` with `until: latest` on `local[2]`, exactly-once checkpoints every {INTERVAL}, and "
            f"every {WRITING_INTERVAL} where a topic is written: exactly once, each epoch while the next one runs.",
        ),
        Engine(
            name=PEER,
            title=f"Structured Streaming {SPARK_OF_PEER}",
            script="on_structured_streaming",
            environment="structured_streaming_kafka",
            note=f"of Spark {SPARK_OF_PEER}, the latest of which all jars of the Kafka source could be fetched from "
            "Maven Central; ours runs on the Spark named above. Its Kafka source on `local[2]`, `AvailableNow` in one "
            "micro-batch, RocksDB with changelog "
            "checkpoints; `from_json` with the columns that the query needs, `from_avro`; sinks `noop` and `kafka`, "
            "which is at least once. Windows still open at the end are not written, and not expected.",
        ),
        Engine(
            name="bytewax",
            title="Bytewax",
            script="on_bytewax",
            environment="bytewax_kafka",
            note="two processes with a worker each, recovery on with a snapshot every 10 s; its `KafkaSource` with "
            "10,000 messages a batch, msgspec and fastavro. Times include the start of its processes.",
        ),
        Engine(
            name=BARE,
            title="bare loop, one process",
            script="on_bare",
            cores=1,
            note="confluent-kafka's `consume`, msgspec into typed structs of q1's columns, or pyruhvro; no query, no "
            "checkpoint, no output.",
        ),
        Engine(
            name=BARE_TWO,
            title="bare loop, two processes",
            script="on_bare",
            note="the same, with half of the partitions each.",
        ),
    )
}
