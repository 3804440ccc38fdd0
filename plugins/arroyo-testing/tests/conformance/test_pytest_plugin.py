"""The pytest plugin: one test per check, readable names and messages, and nothing heavy at the start of pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

MODULE = """
import pyarrow as pa
from arroyo_testing.conformance import Conformance, OperatorCase

ROWS = pa.table({"word": ["a", "b"], "n": [1, 2]})
conformance = Conformance("faulty", [
    OperatorCase("faulty.passing", {}, [ROWS], skip={"nulls": "it never sees any"}),
    OperatorCase("faulty.count_in_attribute", {}, [ROWS]),
    OperatorCase("faulty.schema_in_attribute", {}, [ROWS]),
])
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What pytest says of a module with three cases, of some checks."""
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "test_it.py").write_text(MODULE)
    command = [sys.executable, "-m", "pytest", "-v", "-rs", "-p", "no:cacheprovider", "--import-mode=importlib"]
    command += ["-k", "nulls or no_state_outside_tables or describes_itself", "test_it.py"]
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_every_check_is_a_test_with_a_name_of_its_own(report):
    assert "test_it.py::conformance::faulty.passing::no_state_outside_tables PASSED" in report.stdout
    assert "test_it.py::conformance::faulty.count_in_attribute::no_state_outside_tables FAILED" in report.stdout
    assert report.returncode == 1


def test_a_failure_shows_the_fault_and_no_frames_of_the_kit(report):
    assert "CountInAttribute keeps 'self._seen'" in report.stdout
    assert "Put it into a table" in report.stdout
    assert "operator_checks.py" not in report.stdout


def test_an_exception_shows_the_frames_of_the_operator_only(report):
    assert "faulty.schema_in_attribute fails in tables(): AttributeError: 'SchemaInAttribute' object" in report.stdout
    assert '", ".join(self._stream.names)' in report.stdout
    assert not any(name in report.stdout for name in ("pluggy/", "subject.py", "observed.py"))


def test_a_check_that_does_not_apply_is_skipped_with_its_reason(report):
    assert "it never sees any" in report.stdout


def test_pytest_starts_without_pyarrow():
    code = "import sys, arroyo_testing.pytest_plugin; print('pyarrow' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"
