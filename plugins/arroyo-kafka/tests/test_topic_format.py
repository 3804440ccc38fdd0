"""Where a schema registry is asked, it is for the subject of the topic, unless the settings name another."""

from __future__ import annotations

from typing import Any

import pytest
from arroyo_kafka.topic_format import resolve_format
from google.protobuf import json_format, struct_pb2

AVRO = {"name": "avro", "schema": '{"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}'}
REGISTRY = {"url": "http://127.0.0.1:1"}


def resolved(topic: str, **settings: Any) -> dict[str, Any]:
    value = json_format.ParseDict(AVRO | settings, struct_pb2.Value())
    return json_format.MessageToDict(resolve_format(value, topic))


def test_the_subject_is_that_of_the_topic():
    assert resolved("orders", registry=REGISTRY)["registry"]["subject"] == "orders-value"


def test_a_subject_that_is_written_stays():
    assert resolved("orders", registry=REGISTRY | {"subject": "mine"})["registry"]["subject"] == "mine"


@pytest.mark.parametrize("topic", ["", "orders"])
def test_without_a_registry_the_topic_changes_nothing(topic: str):
    assert resolved(topic) == resolved("others")
