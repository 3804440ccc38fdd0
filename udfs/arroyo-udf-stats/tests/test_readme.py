"""The README names every function, and its examples are true."""

import ast
import re
from pathlib import Path

import pytest
from arroyo_udf_stats.plugin import arroyo_register

from arroyo_core.api import Registry
from arroyo_core.udf import AggregateUdf

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^\| `(\w+\(.*?)` \| `(.*?)` \|", README, re.MULTILINE)
REGISTRY = Registry()
arroyo_register(REGISTRY)


def called(function, aggregate):
    """An aggregate of one group; what is not a list is the same for all rows."""

    def call(*columns):
        if not isinstance(function, AggregateUdf):
            return function(*columns)
        rows = len(columns[0])
        return aggregate(function, *(each if isinstance(each, list) else [each] * rows for each in columns))

    return call


@pytest.mark.parametrize(("example", "result"), EXAMPLES, ids=[example for example, _ in EXAMPLES])
def test_an_example_of_the_readme_is_true(aggregate, example, result):
    found = eval(example, {name: called(function, aggregate) for name, function in REGISTRY.udfs.items()})
    expected = ast.literal_eval(result)
    assert found == (pytest.approx(expected, rel=1e-6) if isinstance(expected, float) else expected)


def test_the_readme_has_an_example_of_every_function():
    assert {name for example, _ in EXAMPLES for name in re.findall(r"(\w+)\(", example)} == set(REGISTRY.udfs)


@pytest.mark.parametrize("function", REGISTRY.udfs.values(), ids=list(REGISTRY.udfs))
def test_every_function_is_documented(function):
    assert function.doc
    assert not isinstance(function, AggregateUdf) or function.takes_batches or function.name == "hll_merge"
