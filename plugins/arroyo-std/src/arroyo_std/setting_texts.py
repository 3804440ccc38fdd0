"""How operators write down the settings that their state depends on: one text for one meaning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from arroyo_core.api.units import format_duration_us
from arroyo_std.aggregates.registry import AggregateSpec

NONE = "none"


def names_text(names: Iterable[str]) -> str:
    """Columns, in their order."""
    return ", ".join(names) or NONE


def signed_duration_text(duration_us: int) -> str:
    """A duration that may be negative."""
    return ("-" if duration_us < 0 else "") + format_duration_us(abs(duration_us))


def schema_text(schema: pa.Schema) -> str:
    """Columns with their types."""
    return names_text(f"{field.name} {field.type}" for field in schema)


def aggregate_texts(aggregates: Sequence[AggregateSpec], *, has_sent: bool) -> dict[str, str]:
    """What aggregates are computed from, by their names.

    A percentile is only taken of the state when a result is made, so it counts only where results have been sent that
    may have to be taken back (`has_sent`). So it is with the separator of texts.
    """
    kept = aggregates if has_sent else [replace(spec, percentile=None, separator=None) for spec in aggregates]
    return {spec.name: f"{spec.shown()} as {spec.name}" for spec in kept}
