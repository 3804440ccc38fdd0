"""Names that other engines have for our connectors and their options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from arroyo_sql.script import OptionValue

#: By the names of connectors: the prefix of the operators. Arroyo's names, then Flink's.
CONNECTORS: Mapping[str, str] = {
    "single_file": "filesystem",
    "confluent": "kafka",
    "upsert-kafka": "kafka",
}
#: Operators that are not called `connector.source` or `connector.sink`.
SINKS: Mapping[str, str] = {
    "stdout": "std.stdout",
    "print": "std.stdout",
    "preview": "std.stdout",
    "blackhole": "std.blackhole",
}
FORMATS: Mapping[str, str] = {"debezium-json": "debezium_json", "raw": "raw_bytes", "confluent_json": "json"}


@dataclass(frozen=True, slots=True)
class Alias:
    """An option of another name: the path in the config, and values that are called otherwise."""

    path: str
    values: Mapping[str, OptionValue] = field(default_factory=dict)


_STARTS: Mapping[str, OptionValue] = {
    "earliest-offset": "earliest",
    "latest-offset": "latest",
    "group-offsets": "group",
}
_KAFKA: Mapping[str, Alias] = {
    "properties.bootstrap.servers": Alias("bootstrap_servers"),
    "value.format": Alias("format"),
}

#: By operator.
OPTIONS: Mapping[str, Mapping[str, Alias]] = {
    "impulse.source": {
        "event_rate": Alias("rate"),
        "message_count": Alias("count"),
    },
    "nexmark.source": {
        "message_count": Alias("events"),
    },
    "filesystem.sink": {
        "target_file_size": Alias("max_file_size"),
        "rolling_policy.file_size": Alias("max_file_size"),
        "partition_fields": Alias("partition_by"),
        "partitioning.fields": Alias("partition_by"),
        "parquet.compression": Alias("compression"),
    },
    "kafka.source": {
        **_KAFKA,
        "source.offset": Alias("start"),
        "source.group_id": Alias("group_id"),
        "source.read_mode": Alias("read_committed", {"read_committed": True, "read_uncommitted": False}),
        "properties.group.id": Alias("group_id"),
        "scan.startup.mode": Alias("start", _STARTS),
        "scan.bounded.mode": Alias("until", _STARTS),
        "topic-pattern": Alias("topic_pattern"),
    },
    "kafka.sink": {
        **_KAFKA,
        "sink.commit_mode": Alias("delivery"),
        "sink.key_field": Alias("key_fields"),
        "key.fields": Alias("key_fields"),
        "sink.timestamp_field": Alias("timestamp_field"),
        "sink.delivery-guarantee": Alias(
            "delivery", {"exactly-once": "exactly_once", "at-least-once": "at_least_once"}
        ),
    },
}
#: Beginnings of options that are settings of a client: `properties.security.protocol`.
PREFIXES: Mapping[str, Mapping[str, str]] = {
    "kafka.source": {"properties": "client", "connection_properties": "client"},
    "kafka.sink": {"properties": "client", "connection_properties": "client"},
}
#: What an operator is told where the script says nothing, because its original does so.
DEFAULTS: Mapping[str, Mapping[str, OptionValue]] = {"nexmark.source": {"table": "event"}}
#: Metadata of messages that has another name there.
METADATA: Mapping[str, str] = {"offset_id": "offset", "timestamp-ms": "timestamp"}
