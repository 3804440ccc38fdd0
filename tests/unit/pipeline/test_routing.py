import pyarrow as pa
import pytest

from arroyo_core.api import ArroyoSchema
from arroyo_core.pipeline.plan import Routing
from arroyo_core.pipeline.routing import resolve_routing

COLUMNS = pa.schema([("a", pa.int64()), ("b", pa.int64())])


@pytest.mark.parametrize(
    ("upstream", "wanted", "widths", "expected"),
    [
        (None, None, (2, 2), (Routing.FORWARD, ())),
        (None, None, (2, 3), (Routing.REBALANCE, ())),
        (("a",), None, (2, 2), (Routing.FORWARD, ())),
        (("a",), None, (2, 3), (Routing.SHUFFLE, ("a",))),
        ((), None, (2, 3), (Routing.SHUFFLE, ())),
        (None, ("a",), (2, 2), (Routing.SHUFFLE, ("a",))),
        (("a",), ("a",), (2, 2), (Routing.FORWARD, ())),
        (("a",), ("a",), (2, 3), (Routing.SHUFFLE, ("a",))),
        (("a",), ("b",), (2, 2), (Routing.SHUFFLE, ("b",))),
        (("a", "b"), ("b", "a"), (2, 2), (Routing.SHUFFLE, ("b", "a"))),
        (None, (), (2, 2), (Routing.SHUFFLE, ())),
        ((), (), (2, 2), (Routing.FORWARD, ())),
    ],
)
def test_an_edge_is_shuffled_unless_it_is_split_as_wanted(upstream, wanted, widths, expected):
    schema = ArroyoSchema(COLUMNS, key_columns=upstream)
    assert resolve_routing(schema, wanted, from_parallelism=widths[0], to_parallelism=widths[1]) == expected
