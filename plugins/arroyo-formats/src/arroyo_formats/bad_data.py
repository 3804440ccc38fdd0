"""What becomes of data that cannot be read: the setting `bad_data` of a connector."""

from __future__ import annotations

from enum import StrEnum

from arroyo_core.api.visible import visible
from arroyo_core.errors import ConfigError

#: The metric that counts bad rows, in all connectors.
COUNTER = "bad_rows"
#: How much of a bad row a message shows.
SHOWN_CHARACTERS = 120


class BadData(StrEnum):
    """What becomes of a row that cannot be read."""

    FAIL = "fail"
    DROP = "drop"
    DEAD_LETTER = "dead_letter"


def read_policy(bad_data: str, dead_letter: str) -> BadData:
    """The policy that the config fields `bad_data` and `dead_letter` (a folder) tell; raises `ConfigError`."""
    try:
        policy = BadData(bad_data.lower())
    except ValueError:
        raise ConfigError(
            f"unknown policy {bad_data!r}", field="bad_data", value=bad_data, allowed=list(BadData)
        ) from None
    if policy is BadData.DEAD_LETTER and not dead_letter:
        raise ConfigError(
            "bad_data: dead_letter needs a folder for what is bad, such as dead_letter: ./dead",
            field="bad_data",
            value=bad_data,
        )
    if dead_letter and policy is not BadData.DEAD_LETTER:
        raise ConfigError("dead_letter needs bad_data: dead_letter", field="dead_letter", value=dead_letter)
    return policy


def as_text(data: bytes) -> str:
    """Bytes as a dead letter has them: text, and what is not UTF-8 as `\\xff`."""
    return data.decode("utf-8", errors="backslashreplace")


def shown(data: bytes) -> str:
    """The beginning of bad data, for messages: what a terminal would obey is written out."""
    text = visible(as_text(data), is_one_line=True)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}... ({len(data)} bytes)"
