"""Shorter forms that programs may use."""

from __future__ import annotations

import pytest
from arroyo_std.short_forms import with_aggregates, with_join_keys


@pytest.mark.parametrize(
    ("form", "aggregates"),
    [
        ("n", [{"function": "count", "as": "n"}]),
        (("price", "n"), [{"function": "count", "column": "price", "as": "n"}]),
        ({"as": "n", "filter": "a > 1"}, [{"function": "count", "as": "n", "filter": "a > 1"}]),
        (
            ["n", ("price", "m")],
            [{"function": "count", "as": "n"}, {"function": "count", "column": "price", "as": "m"}],
        ),
    ],
)
def test_functions_by_name_are_aggregates(form: object, aggregates: object) -> None:
    assert with_aggregates({"size": "10s", "count": form}) == {"size": "10s", "aggregates": aggregates}


def test_named_functions_come_behind_the_aggregates_that_are_given() -> None:
    given = {"aggregates": [{"function": "max", "column": "a"}], "count": "n"}
    assert with_aggregates(given) == {
        "aggregates": [{"function": "max", "column": "a"}, {"function": "count", "as": "n"}]
    }


def test_what_is_no_function_and_what_is_no_list_is_left_to_the_planner() -> None:
    assert with_aggregates({"cuont": "n"}) == {"cuont": "n"}
    assert with_aggregates({"aggregates": "wrong", "count": "n"}) == {"aggregates": "wrong", "count": "n"}


@pytest.mark.parametrize(
    ("on", "keys"),
    [
        ("id", [{"left": "id"}]),
        (["id", {"left": "a", "right": "b"}], [{"left": "id"}, {"left": "a", "right": "b"}]),
        ({"id": "seller"}, [{"left": "id", "right": "seller"}]),
        (3, 3),
    ],
)
def test_keys_of_joins_by_name(on: object, keys: object) -> None:
    assert with_join_keys({"on": on, "type": "inner"}) == {"on": keys, "type": "inner"}
