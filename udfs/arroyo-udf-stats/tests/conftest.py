"""Fewer examples than usual, for each is a whole column; no deadline, for the first call of a kernel is slow."""

import pytest
from hypothesis import settings

settings.register_profile("columns", parent=settings(), max_examples=40, deadline=None)
settings.load_profile("columns")


def _aggregate(function, *columns, cuts=(), order=None):
    """The result over rows that are cut into parts whose states are stored, loaded and merged, in any order.

    Columns are lists of the function's own types; no rows at all give the result of an empty group.
    """
    import pyarrow as pa

    arrays = [
        pa.array(list(column), parameter.type) for column, parameter in zip(columns, function.parameters, strict=True)
    ]
    rows = len(arrays[0])
    bounds = [0, *sorted(min(cut, rows) for cut in cuts), rows]
    states = function.partial(arrays, bounds)
    if order is not None:
        places = list(range(len(states)))
        order.shuffle(places)
        states = states.take(pa.array(places))
    return function.finish(function.merge(states, [0, len(states)]))[0].as_py()


@pytest.fixture(scope="session")
def aggregate():
    return _aggregate
