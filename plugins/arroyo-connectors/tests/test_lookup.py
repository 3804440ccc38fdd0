"""Tables that are asked for so many keys at a time."""

from __future__ import annotations

import pyarrow as pa
import pytest
from arroyo_connectors import PartedLookup

from arroyo_core.errors import DataError, ExternalError

SCHEMA = pa.schema({"id": pa.int64()})


class Echo(PartedLookup):
    keys_at_once = 3

    def __init__(self, problem=None):
        self.asked = []
        self.problem = problem

    def name(self):
        return "echo"

    def cache_key(self):
        return "echo"

    def schema(self):
        return SCHEMA

    def ask(self, keys, schema):
        self.asked.append(keys.num_rows)
        if self.problem is not None:
            raise self.problem
        return keys

    def translate(self, error):
        return ExternalError("nobody is there") if isinstance(error, ConnectionError) else None


def test_keys_are_asked_in_parts_and_answers_joined():
    echo = Echo()
    found = echo.find(pa.table({"id": range(8)}, schema=SCHEMA), SCHEMA)
    assert echo.asked == [3, 3, 2]
    assert found.column("id").to_pylist() == list(range(8))


@pytest.mark.parametrize(
    ("problem", "raised"),
    [(ConnectionError(), ExternalError), (KeyError(), KeyError), (DataError("odd"), DataError)],
)
def test_errors_of_the_client_are_translated(problem, raised):
    with pytest.raises(raised):
        Echo(problem).find(pa.table({"id": [1]}, schema=SCHEMA), SCHEMA)
