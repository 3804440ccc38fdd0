"""The config of a sink, checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from arroyo_formats import FormatChoice, read_choice

from arroyo_core.errors import ConfigError
from arroyo_kafka.client import Client, check_settings, read_client
from arroyo_kafka.kafka_pb2 import SinkConfig
from arroyo_kafka.topic_format import resolve_format

EnumT = TypeVar("EnumT", bound=StrEnum)


class Delivery(StrEnum):
    """How often a row is in the topic after failures."""

    EXACTLY_ONCE = "exactly_once"
    AT_LEAST_ONCE = "at_least_once"


class LostMarker(StrEnum):
    """What to do with an epoch of which nobody knows whether it was committed."""

    FAIL = "fail"
    REPEAT = "repeat"
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """A checked config. Of `topic` and `topic_field` one is empty."""

    client: Client
    topic: str
    topic_field: str
    format: FormatChoice
    key_fields: tuple[str, ...]
    partition_by: tuple[str, ...]
    timestamp_field: str
    #: Names of headers, each with its column.
    headers: tuple[tuple[str, str], ...]
    delivery: Delivery
    on_lost_marker: LostMarker
    progress_topic: str


def resolve_sink(config: SinkConfig) -> SinkConfig:
    """A copy of a config with the format as executors need it; raises `ConfigError`, also for wrong client settings."""
    check_settings(read_client(config.bootstrap_servers, config.client))
    resolved = SinkConfig()
    resolved.CopyFrom(config)
    resolved.format.CopyFrom(resolve_format(config.format, config.topic))
    return resolved


def check_sink(config: SinkConfig) -> SinkSettings:
    """The settings of a config, resolved or not; raises `ConfigError`. Reaches no broker."""
    if not config.bootstrap_servers:
        raise ConfigError("bootstrap_servers is needed: host:port, several with commas", field="bootstrap_servers")
    if bool(config.topic) == bool(config.topic_field):
        field = "topic_field" if config.topic else "topic"
        raise ConfigError("one of topic and topic_field is needed, and only one", field=field)
    return SinkSettings(
        client=read_client(config.bootstrap_servers, config.client),
        topic=config.topic,
        topic_field=config.topic_field,
        format=read_choice(config.format),
        key_fields=_distinct(config.key_fields, "key_fields"),
        partition_by=_distinct(config.partition_by, "partition_by"),
        timestamp_field=config.timestamp_field,
        headers=tuple((header.name, header.column) for header in config.headers),
        delivery=_choice(Delivery, config.delivery, "delivery"),
        on_lost_marker=_choice(LostMarker, config.on_lost_marker, "on_lost_marker"),
        progress_topic=_progress_topic(config),
    )


def _progress_topic(config: SinkConfig) -> str:
    is_exact = config.delivery != Delivery.AT_LEAST_ONCE
    if config.progress_topic and not is_exact:
        raise ConfigError(
            "delivery: at_least_once has no markers to keep", field="progress_topic", value=config.progress_topic
        )
    if config.progress_topic and config.progress_topic == config.topic:
        raise ConfigError(
            "progress_topic must be a topic of its own: its messages are markers, not rows",
            field="progress_topic",
            value=config.progress_topic,
        )
    if is_exact and config.topic_field and not config.progress_topic:
        raise ConfigError(
            "topic_field needs a progress_topic: otherwise the marker of an epoch belongs to the one topic of the sink",
            field="topic_field",
            value=config.topic_field,
        )
    return config.progress_topic


def _distinct(names: Iterable[str], field: str) -> tuple[str, ...]:
    found = tuple(names)
    for index, name in enumerate(found):
        if name in found[:index]:
            raise ConfigError(f"column {name!r} is named twice", field=f"{field}[{index}]", value=name)
    return found


def _choice(kind: type[EnumT], written: str, field: str) -> EnumT:
    try:
        return kind(written)
    except ValueError:
        raise ConfigError(f"unknown choice {written!r}", field=field, value=written, allowed=list(kind)) from None
