"""The canonical layout: what it looks like, and that it keeps meaning and comments of whatever it is given."""

from pathlib import Path

import pytest
import yaml
from arroyo_devtools.formatting import format_text
from arroyo_devtools.formatting.comments import find_comments
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.errors import InvalidPipelineError

ROOT = Path(__file__).parents[3]


def fmt(text):
    formatted = format_text(text, file="p.yaml")
    assert format_text(formatted, file="p.yaml") == formatted
    return formatted


class Loader(yaml.SafeLoader):
    """Mappings as lists of pairs, so that their order counts; tags are kept."""


def _pairs(loader, node):
    return [
        (loader.construct_object(key, deep=True), loader.construct_object(value, deep=True))
        for key, value in node.value
    ]


Loader.add_constructor("tag:yaml.org,2002:map", _pairs)
Loader.add_constructor("!include", lambda loader, node: ("!include", node.value))


def meaning(text):
    return yaml.load(text, Loader=Loader)


MESSY = """\
#   The whole file.

nodes:
- {  id: a , operator : t.source}   # a source
-   operator: 't.map'
    id: b
    # before inputs
    inputs:
      [ a ]


    config:
        query: |
            SELECT 1
              FROM x

        words: ['it''s', "say \\"x\\"", 'plain']
    # the end of b
# before c
-
  id: c
  config: {}
  parallelism:    1
  operator: t.sink
  inputs: [b, b]   #twice
name:   test  # the name
parallelism: 2   # how many
# the end
"""
TIDY = """\
#   The whole file.

name: test      # the name
parallelism: 2  # how many
nodes:
  - {id: a, operator: t.source}  # a source
  - id: b
    operator: "t.map"
    # before inputs
    inputs: [a]

    config:
      query: |
        SELECT 1
          FROM x

      words: ["it's", 'say "x"', "plain"]
    # the end of b
  # before c
  - id: c
    operator: t.sink
    inputs: [b, b]  # twice
    parallelism: 1
    config: {}
# the end
"""


def test_a_messy_file_becomes_tidy():
    assert fmt(MESSY) == TIDY
    assert fmt(TIDY) == TIDY


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("# only this\n", "# only this\n"),
        ("\n\na: 1\n\n\n\nb: 2\n\n", "a: 1\n\nb: 2\n"),
        ("---\na: 1\n...\n", "a: 1\n"),
        ("a: 1\r\nb: 2\r\n", "a: 1\nb: 2\n"),
        ('{"a": [1, {"b": null}]}', '"a": [1, {"b": null}]\n'),
        ("a:\n- 1\n- 2\n", "a:\n  - 1\n  - 2\n"),
        ("a:\n    - 1\n    -   - 2\n        - 3\n", "a:\n  - 1\n  - - 2\n    - 3\n"),
        ("a: # x\n  b: 1\n", "a:  # x\n  b: 1\n"),
        ("a: # x\n  1 # y\n", "# x\na: 1  # y\n"),
        ("a:\n  # x\n  1\n", "# x\na: 1\n"),
        ("- # x\n  a: 1\n", "# x\n- a: 1\n"),
        ("a: [1, # one\n  2]\n", "a:\n  - 1  # one\n  - 2\n"),
        ("a: [\n  1,\n  # two\n  2\n  # end\n]  # all\nb: 1\n", "a:  # all\n  - 1\n  # two\n  - 2\n  # end\nb: 1\n"),
        ("a: {b: , c}\n", "a:\n  b:\n  c:\n"),
        ("a:\nb: ~\n", "a:\nb: ~\n"),
        ("a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n", "a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n"),
        ("a: &x\n    b: 1\nc: *x\n", "a: &x\n  b: 1\nc: *x\n"),
        ("- &x\n  a: 1\n- *x\n", "- &x\n  a: 1\n- *x\n"),
        ("nodes:   !include   'x.yaml'  # x\n", 'nodes: !include "x.yaml"  # x\n'),
        ("[!include a.yaml,!include b.yaml]", "- !include a.yaml\n- !include b.yaml\n"),
        ("a: one\n    two\n  three\n", "a: one\n  two\n  three\n"),
        ('a: "one\n    two\\\n    three"\n', 'a: "one\n  two\\\n  three"\n'),
        ("a: >-\n      one\n      two\n\n      three\n", "a: >-\n  one\n  two\n\n  three\n"),
        ("a: |  # why\n    x\n", "a: |  # why\n  x\n"),
        ("a: |+\n  x\n\n\nb: 1\n", "a: |+\n  x\n\n\nb: 1\n"),
        ("a: >+\n  x\n\n\nb: 1\n", "a: >+\n  x\n\n\nb: 1\n"),
        ("a: >+\n  x\n  y\nb: 1\n", "a: >\n  x\n  y\nb: 1\n"),
        ("a: >\n  x", "a: >-\n  x\n"),
        ("a: |\n  x", "a: |-\n  x\n"),
        ("id: >+\n first\nconfig: a\n\noperator: a\n", "id: >\n  first\n\noperator: a\nconfig: a\n"),
        ("a: |2\n     x\n   y\n", "a: |2\n     x\n   y\n"),
        ("a: '${X}'\n", 'a: "${X}"\n'),
        ("a: 'C:\\x'\n", "a: 'C:\\x'\n"),
        ('a: "\\u2028\\t\\0"\n', 'a: "\\u2028\\t\\u0000"\n'),
        ("#!shebang\n#x\n##y\n#\na: 1\n", "#!shebang\n# x\n##y\n#\na: 1\n"),
        ("dev\n", "dev\n"),
        ("# x\ndev # y\n# z\n", "# x\ndev  # y\n# z\n"),
        ("[]", "[]\n"),
        ("id: x\nconfig: {b: 1, a: 2}\noperator: o\n", "id: x\noperator: o\nconfig: {b: 1, a: 2}\n"),
    ],
)
def test_layout(text, expected):
    assert fmt(text) == expected


def test_what_does_not_fit_on_a_line_takes_several():
    words = ", ".join(f"word{number}" for number in range(30))
    lines = fmt(f"a: [{words}]\n").splitlines()
    assert lines[:2] == ["a:", "  - word0"]
    assert fmt("a: [b, c]\n") == "a: [b, c]\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &x # note\n  value\nb: *x\n", "a: &x value  # note\nb: *x\n"),
        ("a: &x\n  # note\n  value\n", "# note\na: &x value\n"),
        ("!include # note\n  part.yaml\n", "!include part.yaml  # note\n"),
    ],
)
def test_a_comment_between_an_anchor_or_a_tag_and_its_value_is_kept(text, expected):
    assert fmt(text) == expected


def test_comments_that_would_not_fit_are_not_aligned():
    text = f"a: 1  # one\nb: {'x' * 100}  # two\n"
    assert fmt(text) == text
    text = f"a: 1  # {'y' * 60}\nb: {'x' * 90}  # two\n"
    assert fmt(text) == text


def test_the_order_stays_where_an_alias_depends_on_it():
    text = "nodes:\n  - operator: &x o\n    id: *x\nname: test\n"
    assert fmt(text) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\n", "p.yaml:2:1: YAML syntax"),
        ("a: 1\n---\nb: 2\n", "p.yaml:2:1: a second document begins here"),
        ("? [a]\n: 1\n", "p.yaml:1:3: a key must be a string"),
        ("[" * 70 + "]" * 70, "nested more than 64 deep"),
    ],
)
def test_what_is_no_pipeline_file_is_refused_with_its_place(text, message):
    with pytest.raises(InvalidPipelineError) as caught:
        format_text(text, file="p.yaml")
    assert message in str(caught.value)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").rglob("*.yaml")), ids=lambda path: path.name)
def test_examples_keep_their_meaning_and_their_comments(path):
    text = path.read_text()
    formatted = fmt(text)
    assert yaml.safe_load(formatted) == yaml.safe_load(text)
    assert len(find_comments(formatted)) == len(find_comments(text))


WORDS = st.sampled_from(
    ["a", "b1", "some words", "it's", "1", "-1.5", "true", "~", "x:y", "a#b", "é", "-x", "2026-01-01"]
)
KEYS = st.sampled_from(["a", "b", "c d", "id", "operator", "config", "'q'", '"r s"', "nodes", "name", "<<x"])
QUOTED = st.text(st.sampled_from("ab '\"\\:#,{}[]\t\n\u00e9\u2028$"), max_size=12)
COMMENTS = st.sampled_from(["#", "# x", "#y", "# a: b", "  # in", "# arroyo: ignore[x]"])


@st.composite
def scalars(draw, *, is_flow):
    kind = draw(st.sampled_from(["word", "word", "double", "single", "many", *([] if is_flow else ["empty"])]))
    if kind == "word":
        return draw(WORDS)
    if kind == "double":
        return yaml.dump(draw(QUOTED), default_style='"', width=10_000, allow_unicode=True).rstrip("\n")
    if kind == "single":
        text = draw(QUOTED)
        return "'" + "".join(letter for letter in text if letter not in "\t\n\u2028").replace("'", "''") + "'"
    return "" if kind == "empty" else '"one\n          two\n\n          three  \n          four"'


@st.composite
def flows(draw, depth=0):
    kind = draw(st.sampled_from(["scalar", "list", "map"] if depth < 3 else ["scalar"]))
    if kind == "scalar":
        return draw(scalars(is_flow=True))
    gap = st.sampled_from(["", " ", "\n          ", " # in flow\n          "])
    items = draw(st.lists(flows(depth + 1), max_size=4))
    if kind == "map":
        keys = draw(st.permutations(["k1", "k2", '"k 3"', "'k4'"]))
        items = [f"{key}: {item}" for key, item in zip(keys, items, strict=False)]
    body = ",".join(f"{draw(gap)} {item} {draw(gap)}" for item in items)
    return f"[{body}]" if kind == "list" else f"{{{body}}}"


@st.composite
def block_scalars(draw, indent):
    sign = draw(st.sampled_from(["|", "|-", "|+", ">", ">-", ">+"]))
    note = draw(st.sampled_from(["", "  # behind the sign"]))
    lines = draw(
        st.lists(st.sampled_from(["x", "y z", "  deeper", "", "# no comment", "k: v"]), min_size=1, max_size=5)
    )
    pad = " " * (indent + draw(st.integers(1, 4)))
    return f"{sign}{note}\n" + "\n".join(pad + line if line else "" for line in ["first", *lines])


@st.composite
def blocks(draw, indent=0, depth=0):
    """The lines of a block of items, the first of them without its indentation."""
    is_map = draw(st.booleans())
    pad = " " * indent
    keys = draw(st.lists(KEYS, min_size=1, max_size=4, unique_by=lambda key: key.strip("'\"")))
    lines = []
    for place, key in enumerate(keys):
        between = draw(st.lists(st.one_of(st.just(""), COMMENTS.map(lambda text: pad + text)), max_size=2))
        if place:
            lines += between
        head = f"{key}:" if is_map else "-"
        kind = draw(st.sampled_from(["scalar", "flow", "text", "block"] if depth < 3 else ["scalar", "flow"]))
        behind = draw(st.sampled_from(["", "", " # behind"]))
        start = pad if place else ""
        if kind == "block":
            inner = indent + draw(st.integers(2, 4))
            body = draw(blocks(inner, depth + 1))
            lines += [
                f"{start}{head}{behind}",
                *draw(st.lists(COMMENTS.map(lambda t, n=inner: " " * n + t), max_size=1)),
            ]
            lines.append(" " * inner + body)
        elif kind == "text":
            lines.append(f"{start}{head} {draw(block_scalars(indent))}")
        else:
            value = draw(scalars(is_flow=False) if kind == "scalar" else flows())
            lines.append(f"{start}{head} {value}{behind}")
    lines += draw(st.lists(COMMENTS.map(lambda text: pad + text), max_size=1))
    return "\n".join(lines)


def is_yaml(text):
    try:
        meaning(text)
    except yaml.YAMLError:
        return False
    return True


@settings(max_examples=60, deadline=None)
@given(st.lists(COMMENTS, max_size=2), blocks().filter(is_yaml), st.lists(COMMENTS, max_size=2))
def test_any_text_keeps_its_meaning_and_its_comments_and_is_formatted_once(head, body, tail):
    text = "\n".join([*head, body, *tail]) + "\n"
    formatted = fmt(text)
    assert sorted_maps(meaning(formatted)) == sorted_maps(meaning(text))
    tidy = ["".join(comment.text.split()) for comment in find_comments(text)]
    assert sorted("".join(comment.text.split()) for comment in find_comments(formatted)) == sorted(tidy)
    assert not any(
        line != line.rstrip() and "|" not in formatted and '"' not in formatted for line in formatted.splitlines()
    )


def sorted_maps(value):
    """Keys of pipelines and nodes may change their order."""
    if isinstance(value, list) and value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
        return sorted(((str(key), sorted_maps(item)) for key, item in value), key=lambda pair: pair[0])
    return [sorted_maps(item) for item in value] if isinstance(value, list) else value
