from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.pipeline.chaining import derive_chains
from arroyo_core.pipeline.plan import Edge, Routing


def edge(source, target, routing=Routing.FORWARD, port=0):
    return Edge(source=source, target=target, input=port, routing=routing)


def cut(parallelism, edges):
    return [(list(chain.nodes), chain.wave) for chain in derive_chains(parallelism, edges)]


def test_forward_edges_fuse_from_source_to_sink():
    assert cut(dict.fromkeys("abc", 2), [edge("a", "b"), edge("b", "c")]) == [(["a", "b", "c"], 0)]


def test_a_shuffle_begins_a_chain_of_the_next_wave():
    edges = [edge("a", "b"), edge("b", "c", Routing.SHUFFLE), edge("c", "d")]
    assert cut(dict.fromkeys("abcd", 2), edges) == [(["a", "b"], 0), (["c", "d"], 1)]


def test_a_rebalance_begins_a_chain_of_the_next_wave():
    assert cut({"a": 1, "b": 2}, [edge("a", "b", Routing.REBALANCE)]) == [(["a"], 0), (["b"], 1)]


def test_a_node_with_two_consumers_ends_its_chain_but_not_its_wave():
    assert cut(dict.fromkeys("abc", 1), [edge("a", "b"), edge("a", "c")]) == [(["a"], 0), (["b"], 0), (["c"], 0)]


def test_a_node_with_two_inputs_begins_a_chain():
    edges = [edge("a", "c"), edge("b", "c", port=1), edge("c", "d")]
    assert cut(dict.fromkeys("abcd", 1), edges) == [(["a"], 0), (["b"], 0), (["c", "d"], 0)]


def test_reading_one_node_twice_is_two_ways_in():
    assert cut({"a": 1, "b": 1}, [edge("a", "b"), edge("a", "b", port=1)]) == [(["a"], 0), (["b"], 0)]


def test_the_longest_way_decides_the_wave():
    edges = [edge("a", "b", Routing.SHUFFLE), edge("b", "c", Routing.SHUFFLE), edge("a", "c", port=1)]
    assert cut(dict.fromkeys("abc", 2), edges) == [(["a"], 0), (["b"], 1), (["c"], 2)]


NAMES = [f"n{number}" for number in range(7)]


@st.composite
def graphs(draw):
    parallelism = {name: draw(st.integers(1, 2)) for name in NAMES}
    edges = []
    for place, name in enumerate(NAMES):
        sources = draw(st.lists(st.sampled_from(NAMES[:place]), max_size=2)) if place else []
        for port, source in enumerate(sources):
            is_equal = parallelism[source] == parallelism[name]
            routing = draw(st.sampled_from(list(Routing) if is_equal else [Routing.SHUFFLE, Routing.REBALANCE]))
            edges.append(edge(source, name, routing, port))
    return parallelism, edges


@given(graphs())
def test_chains_partition_the_nodes_and_waves_respect_every_edge(graph):
    parallelism, edges = graph
    chains = derive_chains(parallelism, edges)
    chain_of = {node: chain for chain in chains for node in chain.nodes}
    assert sorted(node for chain in chains for node in chain.nodes) == NAMES
    assert [chain.id for chain in chains] == list(range(len(chains)))
    for each in edges:
        source, target = chain_of[each.source], chain_of[each.target]
        if source is target:
            assert each.routing is Routing.FORWARD
            assert source.nodes.index(each.target) == source.nodes.index(each.source) + 1
            continue
        assert source.id < target.id
        assert (each.source, each.target) == (source.tail, target.head)
        assert target.wave >= source.wave + (each.routing is not Routing.FORWARD)
    for chain in chains:
        assert {parallelism[node] for node in chain.nodes} == {chain.parallelism}


@given(graphs())
def test_no_chain_could_be_longer(graph):
    parallelism, edges = graph
    chain_of = {node: chain.id for chain in derive_chains(parallelism, edges) for node in chain.nodes}
    for each in edges:
        is_only_way = sum(other.source == each.source for other in edges) == 1
        is_only_way = is_only_way and sum(other.target == each.target for other in edges) == 1
        fused = chain_of[each.source] == chain_of[each.target]
        assert fused == (is_only_way and each.routing is Routing.FORWARD)
