"""Benchmarks start from any folder, and a case finds its module."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from .epochs.cases import CASES as EPOCH_CASES
from .kafka.cases import ENGINES as KAFKA_ENGINES
from .modules import ENVIRONMENT, module_command
from .operators.cases import ENGINES
from .udfs.__main__ import CASES as UDF_CASES

NAMES = sorted(path.parent.name for path in Path(__file__).parent.glob("*/__main__.py"))


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_tells_what_it_measures(tmp_path: Path, name: str):
    command = module_command(f"{__package__}.{name}", "--help")
    environment = os.environ | ENVIRONMENT
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.startswith(f"usage: python -m benchmarks.{name} ")


def test_every_case_has_a_module():
    databases = ["cdc", "delta", "iceberg", "mysql_sink", "postgres_sink"]
    others = [
        "bridges",
        "console",
        "epochs",
        "formats",
        "kafka",
        "live",
        "nexmark",
        "operators",
        "sql",
        "state",
        "udfs",
    ]
    assert sorted([*databases, *others]) == NAMES
    modules = [
        *(f"epochs.{case.module}" for case in EPOCH_CASES.values()),
        *(f"udfs.{case.module}" for case in UDF_CASES),
        *(f"operators.on_{engine}" for engine in ENGINES),
        *(f"kafka.{engine.script}" for engine in KAFKA_ENGINES.values()),
    ]
    assert [name for name in modules if find_spec(f"{__package__}.{name}") is None] == []


def test_the_environment_of_ours_has_all_that_its_distributions_ask_for():
    """They are installed from this repository: no index has those that are left out."""
    root = Path(__file__).parents[1]
    lines = (root / "benchmarks" / "nexmark" / "requirements-arroyo.txt").read_text().split("\n")
    folders = [root / line.removeprefix("--editable ") for line in lines if line]
    projects = [tomllib.loads((folder / "pyproject.toml").read_text())["project"] for folder in folders]
    needed = {re.split(r"[^a-z-]", need)[0] for project in projects for need in project["dependencies"]}
    assert {name for name in needed if name.startswith("arroyo-")} <= {project["name"] for project in projects}
