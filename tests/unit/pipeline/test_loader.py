import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from arroyo_core.api.limits import ALIASED_VALUES, DEPTH
from arroyo_core.pipeline import loader
from arroyo_core.pipeline.document import Scalar, YamlList, YamlMap, resolve_plain
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.loader import decode, load_document, split_lines
from arroyo_core.pipeline.mistakes import Mistakes


def load(text, variables=None):
    mistakes = Mistakes()
    value = load_document(text, file="p.yaml", environment=Environment(variables or {}), mistakes=mistakes)
    return value, [f"{error.at.line}:{error.at.column} {error.message}" for error in mistakes.sorted()]


def plain(value):
    if isinstance(value, YamlMap):
        return {entry.key: plain(entry.value) for entry in value.entries}
    return [plain(item) for item in value.items] if isinstance(value, YamlList) else value.value


@pytest.mark.parametrize("word", ["no", "yes", "on", "off", "y", "n", "NO", "Off"])
def test_words_that_other_yaml_takes_for_booleans_are_strings(word):
    assert resolve_plain(word) == word


@pytest.mark.parametrize(
    "text", ["017", "0o17", "0x1F", "1_000", "1:30", "190:20:30", "2026-01-31", "1.2.3", "-", "+", "."]
)
def test_what_looks_like_a_number_elsewhere_is_a_string(text):
    assert resolve_plain(text) == text


@pytest.mark.parametrize(
    ("text", "meaning"),
    [("1", 1), ("-0", 0), ("+7", 7), ("1.", 1.0), (".5", 0.5), ("1e3", 1000.0), ("-1.5E-2", -0.015), ("true", True)],
)
def test_numbers_and_booleans_are_read(text, meaning):
    assert resolve_plain(text) == meaning
    assert type(resolve_plain(text)) is type(meaning)


@pytest.mark.parametrize("text", ["", "~", "null"])
def test_null_is_read(text):
    assert resolve_plain(text) is None


def test_a_number_of_a_million_digits_is_no_crash():
    assert resolve_plain("9" * 1_000_000) == float("inf")


def test_quotes_make_a_string():
    value, _ = load("""a: '1'\nb: "true"\nc: |\n  2\n""")
    assert plain(value) == {"a": "1", "b": "true", "c": "2\n"}


def test_places_count_from_one():
    value, _ = load("a:\n  - b: x\n")
    inner = value.entries[0].value.items[0]
    assert (inner.entries[0].key_at.line, inner.entries[0].key_at.column) == (2, 5)
    assert (inner.entries[0].value.at.line, inner.entries[0].value.at.column) == (2, 8)


def test_a_duplicate_key_is_reported_at_the_second_with_the_place_of_the_first():
    value, found = load("a: 1\nb: 2\na: 3\n")
    assert found == ["3:1 key 'a' is written twice: first in line 1, column 1"]
    assert plain(value) == {"a": 1, "b": 2}


def test_keys_that_are_written_differently_but_mean_the_same_are_duplicates():
    assert load("a: 1\n'a': 3\n")[1] == ["2:1 key 'a' is written twice: first in line 1, column 1"]


def test_an_alias_stands_for_its_value():
    assert plain(load("a: &x {k: 1}\nb: *x\n")[0]) == {"a": {"k": 1}, "b": {"k": 1}}


def test_an_aliased_scalar_has_the_place_of_the_alias():
    value, _ = load("a: &x 1\nb: *x\n")
    assert value.entries[1].value.at.line == 2


def test_a_merge_key_adds_what_is_not_written():
    value, found = load("a: &x {k: 1, l: 2}\nb: {<<: *x, k: 3}\nc: {<<: [*x, {m: 4}]}\n")
    assert found == []
    assert plain(value)["b"] == {"k": 3, "l": 2}
    assert plain(value)["c"] == {"k": 1, "l": 2, "m": 4}


def test_merging_something_else_is_refused():
    assert load("a: {<<: 5}\n")[1] == ["1:9 '<<' merges a mapping or a list of mappings"]


def bomb(levels, width=9):
    lines = [f"a0: &a0 [{', '.join(['x'] * width)}]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, levels)]
    return "\n".join(lines)


def test_aliases_that_explode_are_refused_before_they_are_expanded():
    value, found = load(bomb(60))
    assert value is None
    assert len(found) == 1
    assert f"at most {ALIASED_VALUES.value}" in found[0]


def test_aliases_within_the_limit_are_accepted():
    assert load(bomb(4))[1] == []


@pytest.mark.parametrize("text", ["&a [*a]", "&a {k: *a}", "a: &x\n  b: [1, *x]\n"])
def test_an_alias_inside_its_own_value_is_refused(text):
    value, found = load(text)
    assert value is None
    assert "is inside the value it stands for" in found[0]


def test_nesting_is_limited():
    assert load("[" * DEPTH.value + "]" * DEPTH.value)[1] == []
    deep = load("[" * 5000 + "]" * 5000)
    message = f"values are nested more than {DEPTH.value} deep; ARROYO_MAX_DEPTH sets another limit"
    assert deep == (None, [f"1:{DEPTH.value + 1} {message}"])


@pytest.mark.parametrize("text", ["a: !!str 5", "a: !custom {b: 1}", "!!map {a: 1}", "!k a: 1"])
def test_tags_are_refused(text):
    assert any("tags such as" in mistake for mistake in load(text)[1])


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", "1:1 the file is empty"),
        ("# nothing\n", "1:1 the file is empty"),
        ("a: 1\n---\nb: 2\n", "2:1 a second document begins here"),
        ("a:\n\tb: 1\n", "2:1 a tab cannot be used here"),
        ("a: b: c\n", "1:5 YAML syntax: mapping values are not allowed here; a value that contains ': '"),
        ("a: 'open\n", "1:4 YAML syntax: while scanning a quoted scalar"),
        ("? [a]\n: b\n", "1:3 a key must be a string"),
        ("'': b\n", "1:1 a key is missing"),
        ("a: *x\n", "1:4 alias *x has no anchor"),
        ("a: \x07\n", "1:4 the character #x0007"),
        ("a: ${}\n", "1:4 '${' begins no variable"),
        ("a: [${X}]\n", "1:6 inside { } or [ ], ${NAME} must be in quotes"),
    ],
)
def test_what_cannot_be_read_is_reported_with_its_place(text, mistake):
    found = load(text)[1]
    assert len(found) == 1
    assert found[0].startswith(mistake)


def test_an_unset_variable_is_reported_at_the_reference():
    text = 'a: |\n  first\n  then ${NOPE} and ${ALSO}\nb: "x ${NOPE}"\n'
    places = [mistake.split()[0] for mistake in load(text)[1]]
    assert places == ["3:8", "3:20", "4:7"]


def test_keys_are_not_substituted():
    assert plain(load("${A}: ${A}\n", {"A": "x"})[0]) == {"${A}": "x"}


def test_bytes_that_are_not_utf8_are_reported_with_their_place():
    mistakes = Mistakes()
    assert decode("ok: 1\né: ".encode() + b"\xff", file="p.yaml", mistakes=mistakes) is None
    (error,) = mistakes.sorted()
    assert (error.at.line, error.at.column) == (2, 4)


def test_a_byte_order_mark_is_dropped():
    assert decode(b"\xef\xbb\xbfa: 1", file="p.yaml", mistakes=Mistakes()) == "a: 1"


@given(st.text(max_size=60))
def test_any_text_is_read_or_has_mistakes_with_places_inside_it(text):
    value, _ = load(text)
    mistakes = Mistakes()
    load_document(text, file="p.yaml", environment=Environment({}), mistakes=mistakes)
    assert value is not None or mistakes
    for error in mistakes.sorted():
        assert 1 <= error.at.line <= len(split_lines(text)) + 1
        assert error.at.column >= 1


YAML_ISH = st.text(st.sampled_from(list("ab:-[]{}&*#'\"!|>\n $?,~1.")), max_size=40)


@given(YAML_ISH)
def test_any_text_of_yaml_signs_is_read_or_has_mistakes(text):
    value, found = load(text)
    assert value is not None or found


ALIKE = st.lists(
    st.sampled_from([
        *"ab:-[]{}&*#'\"!|>\n $?,~1.%@`\\\t\r\ufeff\x85\u2028é🦀", "- ", ": ", " #", "---", "...", "<<", "&x ", "*x",
        "!t ", "!include ", "!= ", "${A}", "\n  ", "\na: ", "\n- ", "|\n  x\n", ">-\n  y\n", "%TAG !e! x\n---\n",
        "!e!x ", "\\x41",
    ])
).map(lambda parts: "".join(parts) + "\n")  # fmt: skip


@pytest.mark.skipif(loader._CParser is None, reason="PyYAML is installed without its parser in C")
@given(ALIKE | YAML_ISH | st.text(max_size=40))
@example("[a: ]\n")
@example("[b ?]\n")
@example("|#x\n")
@example("!~!a b\n")
@example("?")
@example("a: [1\n")
def test_the_parsers_in_c_and_in_python_give_the_same_values_places_and_mistakes(text):
    fast = load(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "_CParser", None)
        assert load(text) == fast


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="ascii", min_codepoint=32), max_size=9)
)
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner)
)


@given(TREES)
def test_json_is_read_as_json(tree):
    import json

    text = json.dumps(tree).replace("$", "$$")
    value, found = load(text)
    assert found == []
    assert plain(value) == tree


def test_a_secret_is_not_in_the_repr_of_a_value():
    value, _ = load("a: ${A}", {"A": "hunter2"})
    assert isinstance(value.entries[0].value, Scalar)
    assert "hunter2" not in repr(value)


@pytest.mark.parametrize("escape", ["\\UFFFFFFFF", "\\U00110000", "\\ud800", "\\udfff"])
@pytest.mark.parametrize("form", ['a: "x{}"', '"{}": a'])
def test_an_escape_for_no_character_is_a_mistake_at_its_place(escape, form):
    _, found = load(f"b: 1\n{form.format(escape)}")
    assert len(found) == 1
    assert found[0].startswith("2:")
    assert "no character" in found[0]
