"""The config of a source, checked: everything a person can get wrong is found here, before anything runs."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pyarrow as pa
from arroyo_formats import FormatChoice, read_choice
from arroyo_formats.schemas import read_schema
from google.protobuf import json_format, struct_pb2

from arroyo_core.api.limits import PATTERN_CHARS
from arroyo_core.api.updating import UPDATING_META
from arroyo_core.api.urls import absolute_url
from arroyo_core.errors import ConfigError
from arroyo_kafka.client import Client, check_settings, read_client
from arroyo_kafka.kafka_pb2 import SourceConfig
from arroyo_kafka.metadata import MetadataColumns, read_metadata
from arroyo_kafka.partitions import TopicSelection
from arroyo_kafka.topic_format import resolve_format

LEAST_DISCOVERY_US = 1_000_000


class BadData(StrEnum):
    """What becomes of a message that cannot be read."""

    FAIL = "fail"
    DROP = "drop"
    DEAD_LETTER = "dead_letter"


class DataLoss(StrEnum):
    """What to do when the next offset of a partition is not there any more."""

    FAIL = "fail"
    EARLIEST = "earliest"
    LATEST = "latest"


class Place(StrEnum):
    """Where to begin, or to end."""

    EARLIEST = "earliest"
    LATEST = "latest"
    GROUP = "group"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class Bound:
    """A place in every partition; the time is that of `Place.TIMESTAMP`."""

    place: Place
    time_ms: int = 0

    def __str__(self) -> str:
        if self.place is not Place.TIMESTAMP:
            return str(self.place)
        return datetime.fromtimestamp(self.time_ms / 1000, UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """A checked config."""

    client: Client
    topics: TopicSelection
    format: FormatChoice
    #: The columns of the values, without those of `metadata` and `_updating_meta`.
    schema: pa.Schema
    metadata: MetadataColumns
    event_time_field: str | None
    max_lateness_us: int | None
    idle_after_us: int | None
    start: Bound
    #: None for no end.
    until: Bound | None
    #: Empty for the default, which needs the names of job and node.
    group_id: str
    is_read_committed: bool
    on_data_loss: DataLoss
    bad_data: BadData
    #: The folder of bad messages; None without dead letters.
    dead_letter: str | None
    discovery_interval_us: int
    batch_rows: int

    def group_of(self, job_id: str, node_id: str) -> str:
        """The consumer group that is told how far the job is."""
        return self.group_id or f"arroyo-{job_id}-{node_id}"


def resolve_source(config: SourceConfig) -> SourceConfig:
    """A copy of a config as executors need it: absolute paths, and what the format has in files of the driver.

    On the driver, once. Also checks the settings of the client, which executors take as they are.
    """
    resolved = SourceConfig()
    resolved.CopyFrom(config)
    if config.dead_letter:
        resolved.dead_letter = absolute_url(config.dead_letter)
    resolved.format.CopyFrom(resolve_format(config.format, config.topic))
    check_settings(read_client(config.bootstrap_servers, config.client))
    return resolved


def check_source(config: SourceConfig) -> SourceSettings:
    """The settings of a resolved config; raises `ConfigError`."""
    choice = read_choice(config.format)
    schema = choice.schema(read_schema(config.schema))
    metadata = read_metadata(config.metadata)
    _check_metadata(schema, metadata, choice)
    columns = pa.schema([*schema, *metadata.fields])
    if config.HasField("max_lateness") and not config.event_time_field:
        raise ConfigError("max_lateness needs an event time: give event_time_field", field="max_lateness")
    if config.event_time_field:
        _check_event_time(columns, config.event_time_field)
    if config.discovery_interval < LEAST_DISCOVERY_US:
        raise ConfigError(
            "discovery_interval must be at least 1s: every look asks the brokers", field="discovery_interval"
        )
    bad_data = BadData(config.bad_data)
    return SourceSettings(
        client=read_client(config.bootstrap_servers, config.client),
        topics=_topics(config),
        format=choice,
        schema=schema,
        metadata=metadata,
        event_time_field=config.event_time_field or None,
        max_lateness_us=config.max_lateness if config.HasField("max_lateness") else None,
        idle_after_us=config.idle_after if config.HasField("idle_after") else None,
        start=_bound(config.start, "start", (Place.EARLIEST, Place.LATEST, Place.GROUP)) or Bound(Place.EARLIEST),
        until=_bound(config.until, "until", (Place.LATEST,)),
        group_id=config.group_id,
        is_read_committed=config.read_committed,
        on_data_loss=DataLoss(config.on_data_loss),
        bad_data=bad_data,
        dead_letter=_dead_letter(config, bad_data),
        discovery_interval_us=config.discovery_interval,
        batch_rows=config.batch_rows,
    )


def _topics(config: SourceConfig) -> TopicSelection:
    given = {
        "topic": bool(config.topic),
        "topics": bool(config.topics),
        "topic_pattern": bool(config.topic_pattern),
    }
    written = [name for name, is_given in given.items() if is_given]
    if len(written) != 1:
        what = f"{' and '.join(written)} are given" if written else "no topic is given"
        raise ConfigError(
            f"{what}: one of topic, topics and topic_pattern is needed", field=written[1] if written else "topic"
        )
    if not config.topic_pattern:
        names = tuple(config.topics) or (config.topic,)
        if len(set(names)) != len(names):
            raise ConfigError("a topic is named twice", field="topics", value=list(names))
        return TopicSelection(names)
    PATTERN_CHARS.check(len(config.topic_pattern), field="topic_pattern")
    try:
        return TopicSelection(pattern=re.compile(config.topic_pattern))
    except re.error as error:
        raise ConfigError(
            f"topic_pattern is not a regular expression: {error}", field="topic_pattern", value=config.topic_pattern
        ) from error


def _check_metadata(schema: pa.Schema, metadata: MetadataColumns, choice: FormatChoice) -> None:
    for field in metadata.fields:
        if field.name in schema.names or field.name == UPDATING_META:
            raise ConfigError(
                f"the messages have a column {field.name!r} already", field=f"metadata.{field.name}", value=field.name
            )
    if metadata.fields and choice.format.is_updating:
        raise ConfigError(
            f"{choice.name} messages take rows back, which must have the values that they were added with: "
            "the metadata of two messages differ",
            field="metadata",
        )


def _check_event_time(columns: pa.Schema, name: str) -> None:
    if name not in columns.names:
        near = difflib.get_close_matches(name, columns.names, n=1)
        raise ConfigError(
            f"no column {name!r}",
            field="event_time_field",
            value=name,
            allowed=columns.names,
            suggestion=near[0] if near else None,
        )
    found = columns.field(name).type
    if not pa.types.is_timestamp(found):
        raise ConfigError(f"column {name!r} is {found}, not a timestamp", field="event_time_field", value=name)


def _bound(value: struct_pb2.Value, field: str, places: tuple[Place, ...]) -> Bound | None:
    """A place by its name, or `{timestamp: ...}`; None where nothing is written."""
    written: Any = json_format.MessageToDict(value) if value.WhichOneof("kind") else None
    if written is None:
        return None
    if written in places:
        return Bound(Place(written))
    if isinstance(written, dict) and list(written) == [Place.TIMESTAMP.value]:
        return Bound(Place.TIMESTAMP, _time_ms(written["timestamp"], field))
    raise ConfigError(
        f"{field} cannot be {written!r}",
        field=field,
        value=str(written),
        allowed=[*places, "{timestamp: 2026-01-31T12:00:00Z}"],
    )


def _time_ms(written: object, field: str) -> int:
    try:
        moment = datetime.fromisoformat(str(written))
    except ValueError as error:
        raise ConfigError(
            f"{written!r} is not a time: write it as 2026-01-31T12:00:00Z", field=f"{field}.timestamp", value=written
        ) from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _dead_letter(config: SourceConfig, policy: BadData) -> str | None:
    if policy is BadData.DEAD_LETTER and not config.dead_letter:
        raise ConfigError(
            "bad_data: dead_letter needs a folder for the bad messages, such as dead_letter: ./dead",
            field="bad_data",
            value=config.bad_data,
        )
    if config.dead_letter and policy is not BadData.DEAD_LETTER:
        raise ConfigError("dead_letter needs bad_data: dead_letter", field="dead_letter", value=config.dead_letter)
    return config.dead_letter or None
