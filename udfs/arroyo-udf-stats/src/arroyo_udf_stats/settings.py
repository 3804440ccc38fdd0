"""Settings of aggregates: arguments that must be the same for all rows of a group, and are kept in its state."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def read_setting(column: pa.Array, *, name: str) -> Any:
    """The value that all rows have; raises `ValueError` where two differ."""
    values = column.to_numpy()
    value = values[0].item()
    others = values[values != value]
    # NaN differs from itself too: whoever asks refuses it, with better words.
    if len(others) and value == value:
        same_setting(value, others[0].item(), name=name)
    return value


def same_setting(first: Any, second: Any, *, name: str) -> Any:
    """Either of two equal values; raises `ValueError` where they differ."""
    if first != second:
        raise ValueError(f"{name} differs within one group: {first} and {second}")
    return first
