"""Formats as connectors use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from arroyo_formats import Decoded, Format, FormatChoice
from google.protobuf import json_format

from arroyo_core.api import with_defaults


def choose(format: Format, **settings: Any) -> FormatChoice:
    """The format with settings as YAML has them, resolved."""
    found = format.settings_type()
    json_format.ParseDict(settings, found)
    return FormatChoice(format, with_defaults(found)).resolve()


def written(choice: FormatChoice, batch: pa.RecordBatch) -> list[bytes]:
    """The messages of some rows."""
    encoded = choice.writer(batch.schema).write(batch)
    assert encoded.messages.type == pa.large_binary()
    found: list[bytes] = encoded.messages.to_pylist()
    return found


def read(choice: FormatChoice, messages: Sequence[bytes], schema: pa.Schema | None = None) -> Decoded:
    """The rows of some messages, with what every reader promises checked."""
    schema = choice.schema(schema)
    decoded = choice.reader(schema).read(messages)
    decoded.batch.validate(full=True)
    assert decoded.batch.schema.equals(schema)
    places = range(len(messages)) if decoded.origins is None else decoded.origins.tolist()
    bad = [each.index for each in decoded.bad]
    assert len(places) == decoded.batch.num_rows
    assert sorted([*places, *bad]) == list(range(len(messages))), "each message is a row, or bad"
    assert list(places) == sorted(places)
    assert all(each.error and "\n" not in each.error for each in decoded.bad)
    return decoded
