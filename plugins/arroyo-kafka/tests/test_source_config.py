"""Mistakes in the config of `kafka.source`, found before anything runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from arroyo_kafka.client import Client, check_settings, read_client
from arroyo_kafka.partitions import TopicSelection
from arroyo_kafka.source_settings import Bound, Place, check_source

from arroyo_core.api.policy import PlanningPolicy, in_force
from arroyo_core.errors import ConfigError, RefusedError

from .support.sources import make_source, source_config

SERVERS = "localhost:1"


@pytest.mark.parametrize(
    ("config", "field", "text"),
    [
        ({}, "topic", "no topic is given"),
        ({"topic": "a", "topics": ["b"]}, "topics", "topic and topics are given"),
        ({"topics": ["a", "a"]}, "topics", "named twice"),
        ({"topic_pattern": "("}, "topic_pattern", "not a regular expression"),
        ({"topic_pattern": "a" * 1_001}, "topic_pattern", "at most 1000 characters"),
        ({"topic": "a", "event_time_field": "ad"}, "event_time_field", "no column 'ad'"),
        ({"topic": "a", "event_time_field": "id"}, "event_time_field", "not a timestamp"),
        ({"topic": "a", "max_lateness": 1}, "max_lateness", "needs an event time"),
        ({"topic": "a", "start": "yesterday"}, "start", "start cannot be 'yesterday'"),
        ({"topic": "a", "start": {"timestamp": "noon"}}, "start.timestamp", "'noon' is not a time"),
        ({"topic": "a", "until": "earliest"}, "until", "until cannot be 'earliest'"),
        ({"topic": "a", "metadata": {"x": "size"}}, "metadata.x", "a message has no 'size'"),
        ({"topic": "a", "metadata": {"id": "offset"}}, "metadata.id", "a column 'id' already"),
        ({"topic": "a", "bad_data": "dead_letter"}, "bad_data", "needs a folder"),
        ({"topic": "a", "dead_letter": "x"}, "dead_letter", "needs bad_data: dead_letter"),
        ({"topic": "a", "client": {"group.id": "x"}}, "client.group.id", "it is the option group_id"),
        ({"topic": "a", "schema": {}}, "schema", "declare them"),
        ({"topic": "a", "discovery_interval": 1}, "discovery_interval", "at least 1s"),
        ({"topic": "a", "format": "jsonn"}, "format", "there is no format 'jsonn'"),
        (
            {"topic": "a", "format": "debezium_json", "metadata": {"o": "offset"}},
            "metadata",
            "take rows back",
        ),
    ],
)
def test_mistakes_have_a_place(config: dict[str, Any], field: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text.replace("(", r"\(")) as raised:
        check_source(source_config(SERVERS, **config))
    assert raised.value.field == field


def test_bounds_are_read() -> None:
    moment = {"timestamp": "2026-01-31T12:00:00.5Z"}
    settings = check_source(source_config(SERVERS, topic="a", start=moment, until="latest"))
    assert settings.start == Bound(Place.TIMESTAMP, 1_769_860_800_500)
    assert settings.until == Bound(Place.LATEST)
    assert str(settings.start) == "2026-01-31T12:00:00.500+00:00"


def test_settings_that_librdkafka_does_not_know_are_mistakes_of_the_plan() -> None:
    with pytest.raises(ConfigError, match="No such configuration property") as raised:
        make_source(SERVERS, topic="a", client={"linger.mss": "5"})
    assert raised.value.field == "client.linger.mss"
    check_settings(read_client(SERVERS, {"fetch.wait.max.ms": "5", "sasl.mechanism": "PLAIN"}))


def test_secrets_are_hidden_in_errors_and_in_plans() -> None:
    settings = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "hunter2", "sasl.password": "hunter2"}
    client = Client(SERVERS, settings)
    with pytest.raises(ConfigError) as raised:
        client.consumer({"group.id": "g"})
    assert "hunter2" not in str(raised.value)
    assert "***" in str(raised.value)
    assert "hunter2" not in repr(client)
    shown = dict(make_source(SERVERS, topic="a", client={"sasl.password": "hunter2"}).display().fields)
    assert shown["client"] == "sasl.password=***"


def test_debezium_streams_are_updating() -> None:
    source = make_source(SERVERS, topic="a", format="debezium_json")
    assert source.inner.output_schema([]).names[-1] == "_updating_meta"


@pytest.mark.parametrize(
    ("pattern", "chosen"),
    [
        ("orders.*", ["orders", "orders-eu"]),
        ("orders", ["orders"]),
        ("orders|other", ["orders", "other"]),
        ("(?i)ORDERS", ["orders"]),
        # What RE2 cannot, Python does.
        ("(?!orders).*", ["other"]),
        (r"(o)ther|\1", ["other"]),
    ],
)
def test_a_pattern_chooses_topics_by_their_whole_names(pattern: str, chosen: list[str]) -> None:
    selection = TopicSelection(pattern=re.compile(pattern))
    names = ["other", "orders-eu", "orders"]
    assert selection.choose(names) == chosen
    assert [name for name in sorted(names) if selection.is_selected(name)] == chosen


def test_a_pattern_that_python_would_never_end_with_ends() -> None:
    # Python's `re` tries every way to divide the name: longer than anybody lives.
    selection = TopicSelection(pattern=re.compile("(a+)+"))
    assert selection.choose(["a" * 200 + "-", "a" * 200]) == ["a" * 200]


def test_settings_of_an_author_who_is_not_trusted_are_not_given_to_the_library(tmp_path: Path) -> None:
    client = Client(SERVERS, {"plugin.library.paths": f"{tmp_path}/evil.so"})
    with pytest.raises(ConfigError):
        check_settings(client)
    with in_force(PlanningPolicy(is_untrusted=True)):
        check_settings(client)
        with pytest.raises(RefusedError, match="to reach the brokers"):
            client.consumer({})
