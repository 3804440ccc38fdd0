"""Conditions on rows, held against what is known of many rows at once: so files and parts of them need not be read."""

from arroyo_formats.conditions.bounds import ANYTHING, NOTHING_BUT_NULLS, Bounds, Kind, exactly, kind_of
from arroyo_formats.conditions.condition import Condition, check_columns, columns_of, may_hold
from arroyo_formats.conditions.parser import parse_condition
from arroyo_formats.conditions.pieces import Pieces

__all__ = [
    "ANYTHING",
    "NOTHING_BUT_NULLS",
    "Bounds",
    "Condition",
    "Kind",
    "Pieces",
    "check_columns",
    "columns_of",
    "exactly",
    "kind_of",
    "may_hold",
    "parse_condition",
]
