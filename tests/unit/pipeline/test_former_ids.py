"""`was`: which node takes over whose state is clear before anything starts."""

import pytest

from arroyo_core.errors import InvalidPipelineError


def test_a_node_says_what_it_was(plan, nodes):
    made = plan(nodes(("a", "t.source", "", "was: z"), ("b", "t.sink", "a")))
    assert {name: node.was for name, node in made.nodes.items()} == {"a": "z", "b": None}


@pytest.mark.parametrize(
    ("written", "message", "line"),
    [
        ({"b": "was: b"}, "'was' of node 'b' is its own id: leave it out", 4),
        ({"b": "was: a"}, "node 'b' cannot have been 'a', which is in line 3: that node keeps the state", 4),
        ({"a": "was: z", "b": "was: z"}, "node 'a' in line 3 was 'z' already: state goes to one node only", 4),
        ({"a": "was: 'x y'"}, "an id begins with a letter or '_' and may hold letters, digits, '_' and '-'", 3),
        ({"a": "was: [x, y]"}, "'was' must be a string, not a list", 3),
        ({"a": 'was: "${NAME}"'}, "'was' cannot be read from the environment", 3),
    ],
)
def test_mistakes_are_told_with_their_places(plan, written, message, line):
    text = "\n".join(
        [
            "name: t",
            "nodes:",
            f"- {{id: a, operator: t.source, {written.get('a', '')}}}",
            f"- {{id: b, operator: t.sink, inputs: [a], {written.get('b', '')}}}",
            "",
        ]
    )
    with pytest.raises(InvalidPipelineError) as caught:
        plan(text, environment={"NAME": "x"})
    (error,) = caught.value.errors
    assert error.message == message
    assert error.at.line == line
