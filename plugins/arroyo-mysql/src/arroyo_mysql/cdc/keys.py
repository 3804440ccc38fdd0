"""Primary keys as SQL has them, and their order, which only the database knows: it depends on types and collations."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.errors import DataError
from arroyo_mysql.cdc_pb2 import CatalogueColumn
from arroyo_mysql.connection import Session
from arroyo_mysql.literals import key_literals
from arroyo_mysql.names import quoted

#: How many keys are compared in one statement.
_AT_ONCE = 500


def typed_keys(columns: Sequence[pa.Array], key: Sequence[CatalogueColumn]) -> list[tuple[str, ...]]:
    """Row by row the values of a key, as literals of their types; raises `DataError` for one that is NULL."""
    written = []
    for values, column in zip(columns, key, strict=True):
        if values.null_count:
            raise DataError(f"a row has no key: {column.name!r} is NULL, or a date that is none")
        before, after = _around(column)
        texts = pc.binary_join_element_wise(
            pa.scalar(before, pa.large_string()),
            key_literals(values, column.name),
            pa.scalar(after, pa.large_string()),
            pa.scalar("", pa.large_string()),
        )
        written.append(texts.to_pylist())
    return list(zip(*written, strict=True))


def behind(key: Sequence[CatalogueColumn], last: Sequence[str]) -> str:
    """What is true for rows behind a key, in a form for which the server uses the index."""
    names = [quoted(column.name) for column in key]
    parts = []
    for place, name in enumerate(names):
        equal = [f"{names[before]} = {last[before]}" for before in range(place)]
        parts.append(f"({' and '.join([*equal, f'{name} > {last[place]}'])})")
    return f"{names[0]} >= {last[0]} and ({' or '.join(parts)})"


def find_behind(session: Session, keys: Sequence[Sequence[str]], bounds: Sequence[Sequence[str]]) -> list[bool]:
    """Which keys are behind their bounds."""
    found: list[bool] = []
    for first in range(0, len(keys), _AT_ONCE):
        pairs = list(zip(keys, bounds, strict=True))[first : first + _AT_ONCE]
        compared = [f"({', '.join(key)}) > ({', '.join(bound)})" for key, bound in pairs]
        # One row of many columns has its order by itself.
        (row,) = session.execute("select " + ", ".join(compared))
        found.extend(bool(int(value)) for value in row)
    return found


def _around(column: CatalogueColumn) -> tuple[str, str]:
    """What makes a literal a value of the column's type."""
    if column.character_set:
        return "convert(", f" using {column.character_set}) collate {column.collation}"
    if column.data_type == "date":
        return "cast(", " as date)"
    if column.data_type in ("datetime", "timestamp"):
        return "cast(", " as datetime(6))"
    return "", ""
