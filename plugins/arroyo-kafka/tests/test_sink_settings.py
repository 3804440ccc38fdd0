"""Mistakes in the config of a sink are found when the pipeline is planned, without a broker."""

from __future__ import annotations

import pyarrow as pa
import pytest
from arroyo_kafka.plugin import SinkConstructor

from arroyo_core.api import ArroyoSchema, Guarantee, Registry
from arroyo_core.api.updating import with_updating
from arroyo_core.errors import ConfigError

from .support.sinks import sink_config

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("tags", pa.list_(pa.string())),
    ]
)
STREAM = ArroyoSchema(SCHEMA)


def make(**config):
    written = {"bootstrap_servers": "nowhere:1", "topic": "t", **config}
    constructor = SinkConstructor()
    message = constructor.resolve(sink_config(**{key: value for key, value in written.items() if value is not None}))
    return constructor.with_config(message, Registry()).operator


@pytest.mark.parametrize(
    ("config", "field", "words"),
    [
        ({"topic": None}, "topic", "one of topic and topic_field"),
        ({"topic_field": "name"}, "topic_field", "only one"),
        ({"topic": None, "topic_field": "name"}, "topic_field", "needs a progress_topic"),
        ({"progress_topic": "t"}, "progress_topic", "a topic of its own"),
        ({"progress_topic": "p", "delivery": "at_least_once"}, "progress_topic", "no markers"),
        ({"delivery": "twice"}, "delivery", "unknown choice"),
        ({"on_lost_marker": "guess"}, "on_lost_marker", "unknown choice"),
        ({"key_fields": ["id", "id"]}, "key_fields[1]", "named twice"),
        ({"format": "jsno"}, "format", "there is no format"),
        ({"client": {"linger.mss": "5"}}, "client.linger.mss", "linger.mss"),
        ({"client": {"transactional.id": "x"}}, "client.transactional.id", "cannot be set"),
    ],
)
def test_a_wrong_config_is_refused_with_its_field(config, field, words):
    with pytest.raises(ConfigError, match=words) as caught:
        make(**config)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("config", "field", "words"),
    [
        ({"key_fields": ["id", "nmae"]}, "key_fields[1]", "no column 'nmae'"),
        ({"partition_by": ["there"]}, "partition_by[0]", "no column 'there'"),
        ({"partition_by": ["tags"]}, "partition_by[0]", "cannot choose a partition"),
        ({"headers": {"h": "id"}}, "headers.h", "not string or binary"),
        ({"timestamp_field": "id"}, "timestamp_field", "not a timestamp"),
        ({"topic": None, "topic_field": "id", "progress_topic": "p"}, "topic_field", "not a string"),
    ],
)
def test_a_config_that_does_not_fit_the_input_is_refused_with_its_field(config, field, words):
    with pytest.raises(ConfigError, match=words) as caught:
        make(**config).output_schema([STREAM])
    assert caught.value.field == field


def test_an_updating_input_needs_a_key_or_a_format_of_changes():
    updating = with_updating(STREAM)
    with pytest.raises(
        ConfigError, match=r"Name the columns of the key in key_fields.* or write format: debezium_json"
    ):
        make().output_schema([updating])
    assert make(key_fields=["name"]).output_schema([updating]) == updating
    assert make(format="debezium_json").output_schema([updating]) == updating


def test_changes_of_a_key_come_to_one_subtask():
    assert make(key_fields=["name"]).routing_keys([with_updating(STREAM)]) == [("name",)]
    assert make(key_fields=["name"]).routing_keys([STREAM]) == [None]


def test_what_is_promised_follows_from_the_delivery():
    assert make().guarantee() is Guarantee.EXACTLY_ONCE
    assert make(delivery="at_least_once").guarantee() is Guarantee.AT_LEAST_ONCE


def test_secrets_are_not_shown():
    shown = str(make(client={"sasl.password": "geheim"}).display())
    assert "sasl.password=***" in shown
    assert "geheim" not in shown
