import pytest

from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.field_paths import find_text, locate_field
from arroyo_core.pipeline.loader import load_document
from arroyo_core.pipeline.mistakes import Mistakes

TEXT = """\
predicate: p
expressions:
  total: a + b
  "a.b": c
  first: d
aggregates:
  - column: e
  - column: f
    as: g
maxLateness: h
keys: [i, j]
"""


@pytest.fixture(scope="module")
def config():
    return load_document(TEXT, file="p.yaml", environment=Environment({}), mistakes=Mistakes())


def written(at):
    return TEXT.splitlines()[at.line - 1][at.column - 1 :]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("predicate", "p"),
        ("expressions.total", "a + b"),
        ("expressions.a.b", "c"),
        ("expressions[2]", "d"),
        ("expressions[2].sql", "d"),
        ("aggregates[1].column", "f"),
        ("aggregates[1].as", "g"),
        ("max_lateness", "h"),
        ("keys[1]", "j]"),
        ("expressions", "total: a + b"),
        ("aggregates[7].column", "- column: e"),
        ("aggregates[0].missing", "column: e"),
        ("nowhere", "predicate: p"),
        ("predicate.deeper[0]", "p"),
        ("", "predicate: p"),
    ],
)
def test_a_path_leads_to_the_deepest_place_that_is_written(config, path, expected):
    assert written(locate_field(config, path)) == expected


def test_a_text_is_found_where_it_is_a_value(config):
    assert written(find_text(config, "i")) == "i, j]"
    assert find_text(config, "predicate") is None
