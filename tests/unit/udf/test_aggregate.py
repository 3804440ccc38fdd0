"""Classes under `@udaf`: what they are declared as, and what becomes of their states."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.errors import UdfDeclarationError, UdfError
from arroyo_core.udf import AggregateUdf, udaf


@udaf
class DailyMode:
    """The value that comes most often; of several the least."""

    def init(self) -> dict[str, int]:
        return {}

    def update(self, state: dict[str, int], value: str) -> dict[str, int]:
        state[value] = state.get(value, 0) + 1
        return state

    def merge(self, first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
        return {value: first.get(value, 0) + second.get(value, 0) for value in first | second}

    def finish(self, state: dict[str, int]) -> str | None:
        return min(state, key=lambda value: (-state[value], value)) if state else None


def mode(values):
    return min(set(values), key=lambda value: (-values.count(value), value)) if values else None


def test_a_class_is_declared_by_its_annotations():
    assert isinstance(DailyMode, AggregateUdf)
    assert DailyMode.signature == "daily_mode(value: string) -> string"
    assert DailyMode.state_type == pa.map_(pa.string(), pa.int64())
    assert DailyMode.doc.startswith("The value that comes most often")


@given(
    groups=st.lists(st.lists(st.sampled_from("abc"), max_size=5), max_size=5),
    cut=st.integers(0, 5),
)
def test_states_of_parts_merge_to_those_of_the_whole(groups, cut):
    def partial(parts):
        flat = [value for part in parts for value in part]
        bounds = [0]
        for part in parts:
            bounds.append(bounds[-1] + len(part))
        return DailyMode.partial([pa.array(flat, pa.string())], bounds)

    expected = [mode(group) for group in groups]
    assert DailyMode.finish(partial(groups)).to_pylist() == expected
    halves = [half for group in groups for half in (group[:cut], group[cut:])]
    merged = DailyMode.merge(partial(halves), list(range(0, len(halves) + 1, 2)))
    assert DailyMode.finish(merged).to_pylist() == expected


def test_a_null_stands_for_the_state_of_no_rows():
    states = pa.array([None, [("a", 1)]], DailyMode.state_type)
    assert DailyMode.finish(states).to_pylist() == [None, "a"]
    assert DailyMode.finish(DailyMode.merge(states, [0, 0, 2])).to_pylist() == [None, "a"]


def test_methods_may_be_static_and_types_explicit():
    @udaf(name="longest", arguments=[pa.large_string()], state=pa.int32(), returns=pa.int32())
    class Longest:
        @staticmethod
        def init():
            return 0

        @staticmethod
        def update(state, text):
            return max(state, len(text))

        @staticmethod
        def merge(first, second):
            return max(first, second)

        @staticmethod
        def finish(state):
            return state

    assert Longest.signature == "longest(text: large_string) -> int32"
    assert Longest.finish(Longest.partial([pa.array(["a", "bcd"])], [0, 2])).equals(pa.array([3], pa.int32()))


def test_a_state_that_does_not_fit_is_caught():
    @udaf
    class Wrong:
        def init(self) -> int:
            return 0

        def update(self, state: int, value: int) -> int:
            return f"{state}{value}"  # type: ignore[return-value]

        def merge(self, first: int, second: int) -> int:
            raise ZeroDivisionError("never")

        def finish(self, state: int) -> int:
            raise SystemExit(2)

    with pytest.raises(UdfError, match=r"UDF 'wrong': the state is declared as int64, and was '05' \(str\)"):
        Wrong.partial([pa.array([5])], [0, 1])
    with pytest.raises(UdfError, match="ZeroDivisionError: never; called with first=1, second=2"):
        Wrong.merge(pa.array([1, 2]), [0, 2])
    with pytest.raises(UdfError, match=r"it called sys.exit\(2\); called with state=1"):
        Wrong.finish(pa.array([1]))


def aggregate_class(**changes):
    def init(self) -> int:
        return 0

    def update(self, state: int, value: int) -> int:
        return state

    def merge(self, first: int, second: int) -> int:
        return first

    def finish(self, state: int) -> int:
        return state

    methods = {"init": init, "update": update, "merge": merge, "finish": finish, **changes}
    return type("Made", (), {name: method for name, method in methods.items() if method})


def _no_values(self, state: int) -> int:
    return state


def _complex_state(self) -> complex:
    return 0j


def _needs_argument(self, path):
    self.path = path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"merge": None}, "UDF 'made': class Made lacks the method 'merge'"),
        ({"update": _no_values}, "UDF 'made': update takes the state and at least one value"),
        ({"init": _complex_state}, r"UDF 'made', result of init: no Arrow type for complex; .* dict\[...\] or tuple"),
        ({"__init__": _needs_argument}, "UDF 'made': class Made cannot be made without arguments"),
    ],
)
def test_a_mistake_in_a_declaration_is_named(changes, message):
    with pytest.raises(UdfDeclarationError, match=message):
        udaf(aggregate_class(**changes))


def test_a_function_is_no_aggregate():
    def total(x: int) -> int:
        return x

    with pytest.raises(UdfDeclarationError, match="an aggregate is a class with init, update, merge, finish"):
        udaf(total)
