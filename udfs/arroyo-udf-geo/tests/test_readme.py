"""The README names every function, and its examples are true."""

import ast
from pathlib import Path

import pyarrow as pa
import pytest
from arroyo_testing.examples import evaluate, read_examples
from arroyo_udf_geo.plugin import arroyo_register

from arroyo_core.api import Registry

EXAMPLES = read_examples(Path(__file__).parents[1] / "README.md")
REGISTRY = Registry()
arroyo_register(REGISTRY)


@pytest.mark.parametrize(("example", "result"), EXAMPLES, ids=[example for example, _ in EXAMPLES])
def test_an_example_of_the_readme_is_true(example, result):
    found = evaluate(example, REGISTRY.udfs)
    expected = ast.literal_eval(result)
    is_rounded = isinstance(expected, float | dict)
    assert found == (pytest.approx(expected, rel=1e-6, abs=1e-6) if is_rounded else expected)


def test_the_readme_has_an_example_of_every_function():
    assert {example.partition("(")[0] for example, _ in EXAMPLES} == set(REGISTRY.udfs)


@pytest.mark.parametrize("function", REGISTRY.udfs.values(), ids=list(REGISTRY.udfs))
def test_every_function_is_documented_and_gives_what_it_declares(function):
    assert function.doc
    assert function.is_vectorised
    nothing = [pa.nulls(2, parameter.type) for parameter in function.parameters]
    assert function.evaluate(nothing).to_pylist() == [None, None]
