"""The format of a topic's messages, as executors need it."""

from __future__ import annotations

from arroyo_formats import read_choice
from google.protobuf import struct_pb2


def resolve_format(value: struct_pb2.Value, topic: str) -> struct_pb2.Value:
    """A format with what it has in files of the driver; where a schema registry is asked, by `topic`'s own subject.

    On the driver, once. No topic where there are several: the settings have to name the subject then.
    """
    choice = read_choice(value)
    return (choice.for_topic(topic) if topic else choice).resolve().to_value()
