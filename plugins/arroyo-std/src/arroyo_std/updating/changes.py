"""Which results are the same as before."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_std.aggregates.groups import Mask
from arroyo_std.aggregates.lists import flatten, lengths_of


def same_rows(left: list[pa.Array], right: list[pa.Array], rows: int) -> Mask:
    """Whether each row is the same in all columns."""
    same = np.ones(rows, dtype=np.bool_)
    for old, new in zip(left, right, strict=True):
        same &= same_values(old, new)
    return same


def same_values(left: pa.Array, right: pa.Array) -> Mask:
    """Whether each value is the same: null is null, NaN is NaN, lists are their elements in order."""
    is_null = left.is_null(nan_is_null=False).to_numpy(zero_copy_only=False)
    other_null = right.is_null(nan_is_null=False).to_numpy(zero_copy_only=False)
    kind = left.type
    same: Mask
    if pa.types.is_list(kind):
        same = _same_lists(left, right)
    elif pa.types.is_struct(kind):
        same = np.ones(len(left), dtype=np.bool_)
        for old, new in zip(left.flatten(), right.flatten(), strict=True):
            same &= same_values(old, new)
    elif pa.types.is_null(kind):
        same = np.ones(len(left), dtype=np.bool_)
    else:
        equal = pc.equal(left, right)
        if pa.types.is_floating(kind):
            equal = pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right)))
        same = pc.fill_null(equal, False).to_numpy(zero_copy_only=False)
    return np.where(is_null | other_null, is_null & other_null, same)


def _same_lists(left: pa.Array, right: pa.Array) -> Mask:
    lengths = lengths_of(left)
    same: Mask = lengths == lengths_of(right)
    rows = np.flatnonzero(same)
    places = pa.array(rows)
    parents, (elements,) = flatten([left.take(places)])
    _, (others,) = flatten([right.take(places)])
    differing = parents[~same_values(elements, others)]
    same[rows[differing]] = False
    return same
