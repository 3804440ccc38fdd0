"""Pure: how the rows of an edge find their subtask."""

from __future__ import annotations

from arroyo_core.api import ArroyoSchema
from arroyo_core.pipeline.plan import Routing


def resolve_routing(
    upstream: ArroyoSchema, keys: tuple[str, ...] | None, *, from_parallelism: int, to_parallelism: int
) -> tuple[Routing, tuple[str, ...]]:
    """The routing of an edge whose reader wants its rows split by `keys` (None: by anything).

    A keyed stream stays keyed over a change of parallelism.
    """
    is_equal = from_parallelism == to_parallelism
    if keys is not None:
        if is_equal and upstream.key_columns == keys:
            return Routing.FORWARD, ()
        return Routing.SHUFFLE, keys
    if is_equal:
        return Routing.FORWARD, ()
    if upstream.key_columns is not None:
        return Routing.SHUFFLE, upstream.key_columns
    return Routing.REBALANCE, ()
