"""Pipelines and tests in a folder, and what `arroyo test` says of them."""

from __future__ import annotations

import textwrap
from functools import partial

import pytest

from arroyo_core.cli.main import main

from .case_pipelines import EVEN, TWO, WINDOWS


@pytest.fixture
def write(tmp_path):
    """Writes files into a folder, in which there is also a file for sources to find."""
    (tmp_path / "orders.csv").write_text("id,shop,amount,at\n")

    def write_file(text, name="p.yaml"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text).replace("FOLDER", str(tmp_path)))
        return path

    return write_file


@pytest.fixture
def run_tests(capsys):
    """Runs `arroyo test`; gives its exit code, what it printed, and its mistakes."""

    def run(*arguments):
        code = main(["test", *map(str, arguments)])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


@pytest.fixture
def run_within(write, run_tests):
    """Runs tests as part of a pipeline."""

    def run(pipeline, tests, *arguments):
        return run_tests(write(pipeline + "tests:\n" + textwrap.indent(textwrap.dedent(tests), "  ")), *arguments)

    return run


@pytest.fixture
def even(run_within):
    """Runs tests of the pipeline that keeps even numbers."""
    return partial(run_within, EVEN)


@pytest.fixture
def windows(run_within):
    """Runs tests of the pipeline with windows, and an output for late rows."""
    return partial(run_within, WINDOWS)


@pytest.fixture
def two(run_within):
    """Runs tests of the pipeline with two sources."""
    return partial(run_within, TWO)
