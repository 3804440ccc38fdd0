"""What readers and writers of messages share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from arroyo_core.errors import ConfigError
from arroyo_formats.format import BadMessage, Decoded, Indices, MessageWriter
from arroyo_formats.text.salvage import RowParser, Texts, parse_texts


def read_texts(parser: RowParser, messages: Sequence[bytes], schema: pa.Schema) -> Decoded:
    """One row for each good message of text, and the bad ones; `schema` is that of the parser."""
    parsed = parse_texts(parser, Texts.of_messages(messages))
    batch = parsed.batch if parsed.batch is not None else empty_batch(schema)
    bad = [BadMessage(index, error) for index, error in parsed.bad.items()]
    return Decoded(batch, good_messages(len(messages), list(parsed.bad)) if bad else None, bad)


def good_messages(count: int, bad: Sequence[int]) -> Indices:
    """The numbers of the messages that are not bad."""
    return np.setdiff1d(np.arange(count), bad, assume_unique=True)


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def check_encodable(name: str, make: Callable[[pa.Schema], MessageWriter], schema: pa.Schema) -> None:
    """Raises `ConfigError` naming a column that messages cannot hold, found by writing none of its rows."""
    for field in schema:
        only = pa.schema([field])
        try:
            make(only).write(empty_batch(only))
        except (pa.ArrowException, TypeError) as error:
            raise ConfigError(
                f"column {field.name!r} is {field.type}, which {name} messages cannot hold ({error}); "
                "leave it out, cast it, or choose another format",
                field="format",
                value=name,
            ) from error


def refuse_rows(name: str) -> ConfigError:
    """Why a format whose messages hold many rows cannot be written as messages."""
    return ConfigError(
        f"a {name} message is a whole file of many rows, so rows cannot be written one by one: choose another format",
        field="format",
        value=name,
    )
