"""Values that are given with `--set` stay values in SQL."""

from __future__ import annotations

import datafusion
import pyarrow as pa
import pytest
from arroyo_std.std_pb2 import FilterConfig
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.errors import InvalidPipelineError, Location
from arroyo_core.pipeline import plan_text
from arroyo_core.pipeline.document import Scalar
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.loader import load_document
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.sql_parameters import quote_given
from arroyo_core.pipeline.substitution import References
from arroyo_core.plugin import installed_plugins

ATTACK = "x' = 'x' or 'q"
PIPELINE = """\
name: p
parameters:
  x: {declaration}
nodes:
  - {{id: numbers, operator: impulse.source, config: {{count: 3}}}}
  - {{id: some, operator: std.filter, inputs: [numbers], config: {{predicate: {predicate}}}}}
  - {{id: out, operator: std.blackhole, inputs: [some]}}
"""


def predicate_of(written: str, *, declaration: str = "", **given: object) -> str:
    text = PIPELINE.format(predicate=f'"{written}"', declaration=declaration)
    plan = plan_text(text, file="p.yaml", plugins=installed_plugins(), environment={}, parameters=given)
    return FilterConfig.FromString(plan.nodes["some"].config).predicate


def mistake_of(written: str, **given: object) -> str:
    with pytest.raises(InvalidPipelineError) as raised:
        predicate_of(written, **given)
    (error,) = raised.value.errors
    return str(error)


def test_a_given_text_does_not_change_the_predicate():
    """Nobody's counter is that text; as it was pasted, everybody's row passed."""
    predicate = predicate_of("cast(counter as varchar) = '${x}'", x=ATTACK.replace("'q", "'q' = 'q"))
    rows = datafusion.SessionContext().sql(f"select * from (values (1), (2)) as t(counter) where {predicate}")
    assert rows.count() == 0


def test_quotes_of_a_value_are_doubled_inside_of_quotes():
    assert predicate_of("'a' = '${x}'", x=ATTACK) == "'a' = 'x'' = ''x'' or ''q'"
    assert predicate_of("'a' = 'b-${x}-${x}'", x="it's") == "'a' = 'b-it''s-it''s'"
    assert predicate_of('\\"${x}\\" > 1', x="counter") == '"counter" > 1'


@pytest.mark.parametrize("value", ["1 or true", "x'", "1--", "1;", "(1, 2)", "a b", "''", "1/*", "$1"])
def test_outside_of_quotes_only_numbers_and_names_can_be_given(value):
    said = mistake_of("counter > ${x}", x=value)
    assert "the value given for parameter 'x' is neither a number nor a plain name" in said
    assert "write '${x}'" in said


@pytest.mark.parametrize("value", ["7", "-7", "1.5", "1e3", "counter"])
def test_numbers_and_names_are_given_as_they_are(value):
    assert predicate_of("counter > ${x}", x=value) == f"counter > {value}"


def test_a_negative_number_does_not_begin_a_comment():
    assert "would begin a comment" in mistake_of("counter -${x} > 0", declaration="{type: int}", x=-5)
    assert predicate_of("counter - ${x} > 0", declaration="{type: int}", x=-5) == "counter - -5 > 0"


@pytest.mark.parametrize("written", ["counter > 1 -- ${x}", "counter > 1 /* ${x} */", "counter > 1 -- '${x}'"])
def test_a_value_does_not_end_a_comment(written):
    assert "neither a number nor a plain name" in mistake_of(written, x="\n or true */ or true")


def test_a_backslash_does_not_end_a_text_that_has_escapes():
    assert "has a backslash" in mistake_of("E'${x}' = ' or true --'", x="\\\\")
    assert "has a backslash" in mistake_of("E'\\\\'${x}' = ' or true --'", x="\\\\")


def test_a_reference_alone_is_the_expression():
    assert predicate_of("${x}", x="counter > 1 or counter = 0") == "counter > 1 or counter = 0"


def test_what_the_file_says_is_its_authors():
    assert predicate_of("counter in ${x}", declaration="{default: '(1, 2)'}") == "counter in (1, 2)"
    assert predicate_of("'it''s' = '${x}'", declaration="{default: it''s}") == "'it''s' = 'it''s'"


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30))
def test_any_text_is_the_content_of_its_literal(value):
    references = References(
        Environment({}),
        parameters={"x": Scalar(at=Location("f", 1, 1), text=value, written=value, is_plain=False, is_given=True)},
    )
    mistakes = Mistakes()
    scalar = load_document(
        "\"'<${x}>'\"", file="f", environment=Environment({}), mistakes=mistakes, references=references
    )
    quoted = quote_given(scalar, "sql", mistakes)
    assert not mistakes
    found = datafusion.SessionContext().sql(f"select {quoted} as found").to_arrow_table()
    assert found.column("found").cast(pa.string()).to_pylist() == [f"<{value}>"]
