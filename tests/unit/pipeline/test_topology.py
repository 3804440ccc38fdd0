from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.pipeline.topology import consumers, find_cycles, topological_order

NAMES = [f"n{number}" for number in range(8)]
GRAPHS = st.fixed_dictionaries({name: st.lists(st.sampled_from(NAMES), max_size=3) for name in NAMES})
TREES = st.tuples(
    *(st.lists(st.sampled_from(NAMES[:place]), max_size=3) if place else st.just([]) for place in range(len(NAMES)))
)


@given(GRAPHS)
def test_inputs_come_before_their_consumers(inputs):
    order = topological_order(inputs)
    for place, node in enumerate(order):
        assert set(inputs[node]) <= set(order[:place])


@given(GRAPHS)
def test_every_node_is_ordered_unless_it_depends_on_a_cycle(inputs):
    left = set(inputs) - set(topological_order(inputs))
    for node in left:
        assert set(inputs[node]) & left
    assert bool(left) == bool(find_cycles(inputs))


@given(TREES)
def test_a_file_that_is_ordered_already_keeps_its_order(inputs):
    assert topological_order(dict(zip(NAMES, inputs, strict=True))) == NAMES


@given(GRAPHS)
def test_cycles_follow_the_flow_and_share_no_node(inputs):
    cycles = find_cycles(inputs)
    seen = [node for cycle in cycles for node in cycle]
    assert len(seen) == len(set(seen))
    for cycle in cycles:
        for source, target in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            assert source in inputs[target]


@given(GRAPHS)
def test_no_cycle_is_left_when_one_node_of_each_reported_knot_is_cut(inputs):
    rest = dict(inputs)
    for _ in range(len(inputs) + 1):
        cycles = find_cycles(rest)
        if not cycles:
            break
        for cycle in cycles:
            rest[cycle[0]] = []
    assert set(topological_order(rest)) == set(rest)


def test_a_reader_of_one_node_twice_is_one_consumer():
    assert consumers({"a": [], "b": ["a", "a"]}) == {"a": ["b"], "b": []}


def test_the_shortest_cycle_through_the_first_node_is_named():
    assert find_cycles({"a": ["c", "b"], "b": ["a"], "c": ["b"]}) == [["a", "b"]]
