"""A plugin of somebody else: built, installed with pip's tools, and used by every command, on Spark too."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[2]

PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "1.4.2"
dependencies = ["arroyo-core>=0.1,<0.2"]

[project.entry-points.arroyo_core]
{prefix} = "{package}.plugin"

[tool.hatch.build.targets.wheel]
packages = ["{package}"]
"""


def documented_plugin():
    """The plugin that docs/write-a-plugin.md shows, as an author would copy it."""
    page = (ROOT / "docs" / "write-a-plugin.md").read_text(encoding="utf-8")
    (code,) = [block for block in re.findall(r"^```python\n(.*?)^```", page, re.M | re.S) if "@hookimpl" in block]
    return code


PIPELINE = """\
name: third_party
parallelism: 2
nodes:
  - id: numbers
    operator: impulse.source
    config: {{count: 1000}}
  - id: counted
    operator: {operator}
    inputs: [numbers]
  - id: files
    operator: filesystem.sink
    inputs: [counted]
    config: {{path: {out}, format: parquet}}
"""


def install(folder, site):
    """Build the wheel of `folder` and install it into `site`, without an index."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(build, cwd=folder, check=True, capture_output=True)
    wheels = [str(path) for path in (folder / "dist").glob("*.whl")]
    command = [sys.executable, "-m", "uv", "pip", "install", "--no-deps", "--offline", "--target", str(site), *wheels]
    subprocess.run(command, check=True, capture_output=True)


def write_project(folder, *, name, package, prefix, plugin):
    (folder / package).mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PROJECT.format(name=name, package=package, prefix=prefix))
    (folder / package / "__init__.py").write_text("")
    (folder / package / "plugin.py").write_text(plugin)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder of installed packages: acme's plugin, and one that fails on import."""
    sources, site = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("site")
    write_project(sources / "acme", name="acme-operators", package="acme", prefix="acme", plugin=documented_plugin())
    broken = "import a_client_library_that_is_not_installed\n"
    write_project(sources / "broken", name="broken-operators", package="broken", prefix="broken", plugin=broken)
    install(sources / "acme", site)
    install(sources / "broken", site)
    return site


@pytest.fixture
def arroyo(site, tmp_path):
    """Runs the `arroyo` command with the plugins of `site`, in a folder of its own."""

    def run(*arguments):
        command = [str(Path(sys.executable).parent / "arroyo"), *arguments]
        environment = {**os.environ, "PYTHONPATH": str(site)}
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=180
        )

    return run


@pytest.fixture
def pipeline(tmp_path):
    def write(operator):
        path = tmp_path / "pipeline.yaml"
        path.write_text(PIPELINE.format(operator=operator, out=tmp_path / "out"))
        return str(path)

    return write


def test_plugins_lists_the_plugin_with_its_distribution_and_its_operators(arroyo):
    answer = arroyo("plugins")
    assert answer.returncode == 0, answer.stderr
    assert "acme-operators" in answer.stdout
    assert "1.4.2" in answer.stdout
    assert "acme.running_count" in answer.stdout


def test_plugins_says_why_a_plugin_could_not_be_loaded(arroyo):
    answer = arroyo("plugins", "--format", "json")
    assert "broken-operators" in answer.stdout
    assert "a_client_library_that_is_not_installed" in answer.stdout
    json.loads(answer.stdout)


def test_validate_knows_the_operator(arroyo, pipeline):
    answer = arroyo("validate", pipeline("acme.running_count"))
    assert answer.returncode == 0, answer.stderr


def test_validate_suggests_the_operator_for_a_typing_mistake(arroyo, pipeline):
    answer = arroyo("validate", pipeline("acme.runing_count"))
    assert answer.returncode == 2
    assert "pipeline.yaml:8:15" in answer.stderr
    assert "acme.running_count" in answer.stderr


def test_a_pipeline_that_needs_the_broken_plugin_is_refused_with_the_cause(arroyo, pipeline):
    answer = arroyo("validate", pipeline("broken.anything"))
    assert answer.returncode == 2
    assert "a_client_library_that_is_not_installed" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_run_executes_the_operator_on_spark(arroyo, pipeline, tmp_path):
    answer = arroyo("run", pipeline("acme.running_count"))
    assert answer.returncode == 0, answer.stderr
    written = pq.read_table(tmp_path / "out")
    assert sorted(written.column("counter").to_pylist()) == list(range(1000))


#: Every kind that `arroyo new` makes a distribution of, with a name for it.
KINDS = {
    "plugin": "arroyo-acme",
    "source": "acme-source",
    "sink": "acme-sink",
    "operator": "acme-operator",
    "database": "acme-database",
    "udf": "acme-functions",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A distribution of each kind, all installed in one folder; and the folder."""
    folder, site = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("made_site")
    for kind, name in KINDS.items():
        make = [str(Path(sys.executable).with_name("arroyo")), "new", kind, name, "--into", str(folder)]
        subprocess.run(make, check=True, capture_output=True)
        install(folder / name, site)
    return folder, site


def test_what_is_made_from_the_templates_is_found_where_it_is_installed(made):
    folder, site = made
    command = [str(Path(sys.executable).with_name("arroyo")), "plugins", "--format", "json"]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    answer = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    for name in (
        "acme.running_count",
        "acme_source.feed",
        "acme_sink.ledger",
        "acme_operator.totals",
        "acme_database.sink",
        "acme_functions_share",
    ):
        assert name in answer.stdout


def test_what_is_made_from_the_templates_passes_its_own_tests(made):
    folder, site = made
    # Of all at once, so that what they share is loaded once.
    tests = [str(folder / name / "tests") for name in KINDS.values()]
    settings = ["-c", str(ROOT / "pyproject.toml"), f"--rootdir={folder}"]
    command = [sys.executable, "-m", "pytest", "-q", "-rA", *settings, *tests]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    answer = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    for name in KINDS.values():
        assert f"PASSED {name}/tests/test_" in answer.stdout
