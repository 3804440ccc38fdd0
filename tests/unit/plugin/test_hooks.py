"""What a third party can add with a distribution of its own, by its hooks alone: a real one, found by real commands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = '''
from pathlib import Path

from arroyo_core.plugin import hookimpl


@hookimpl
def arroyo_add_command(commands):
    parser = commands.add_parser("greet", help="say hello")
    parser.add_argument("name")
    parser.set_defaults(command=greet)


def greet(args):
    print(f"hello {args.name}")
    return 7


@hookimpl
def arroyo_language():
    from arroyo_core.graph.languages import Language, Yaml

    class Lines(Language):
        """A pipeline from impulse.source to std.blackhole, by the number of rows."""

        endings = (".count",)

        def read(self, text, *, file, references, includes, mistakes):
            if not text.strip().isdigit():
                from arroyo_core.errors import Location

                mistakes.add("expected the number of rows", at=Location(file, 1, 1), value=text.strip())
                return None
            text = f"""
name: counted
nodes:
  - {{id: rows, operator: impulse.source, config: {{count: {text.strip()}}}}}
  - {{id: out, operator: std.blackhole, inputs: [rows]}}
"""
            return Yaml().read(text, file=file, references=references, includes=includes, mistakes=mistakes)

    return [Lines()]


@hookimpl
def arroyo_section():
    from arroyo_core.graph.sections import Section

    class Owner(Section):
        key = "owner"
        description = "Who answers for the pipeline."

        def check(self, entry, mistakes):
            if "@" not in entry.value.text:
                mistakes.add("an owner is an address of mail", at=entry.value.at, value=entry.value.text)

        def schema(self):
            return {"type": "string"}

    return [Owner()]


@hookimpl
def arroyo_storage():
    from arroyo_core.state import StorageKind
    from arroyo_core.state.local_storage import LocalDriver

    class Acme(StorageKind):
        protocols = ("acme",)

        def open(self, url, options):
            driver = LocalDriver(url.removeprefix("acme://"))
            driver.creates_exclusively = True
            return driver

    return [Acme()]
'''


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder on the path with the distribution `acme-everything`."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "acme_everything.py").write_text(PLUGIN)
    info = folder / "acme_everything-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-everything\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[arroyo_core]\nacme = acme_everything\n")
    return folder


@pytest.fixture
def arroyo(site, tmp_path):
    """Runs `arroyo` where the distribution is installed."""

    def run(*arguments: str, plugins: Path | None = site) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(plugins or "")}
        command = [sys.executable, "-m", "arroyo_core", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run


def test_a_plugin_adds_a_command(arroyo):
    done = arroyo("greet", "world")
    assert (done.returncode, done.stdout) == (7, "hello world\n")
    assert "say hello" in arroyo("--help").stdout
    assert arroyo("greet", "world", plugins=None).returncode == 2


def test_a_plugin_adds_a_language(arroyo, tmp_path):
    (tmp_path / "five.count").write_text("5")
    (tmp_path / "bad.count").write_text("many")
    done = arroyo("validate", "five.count", "bad.count")
    assert "five.count: valid (2 nodes" in done.stdout
    assert "bad.count:1:1: expected the number of rows" in done.stderr


def test_a_plugin_adds_a_section(arroyo, tmp_path):
    nodes = "nodes:\n  - {id: rows, operator: impulse.source, config: {count: 1}}\n"
    nodes += "  - {id: out, operator: std.blackhole, inputs: [rows]}\n"
    (tmp_path / "owned.yaml").write_text(f"name: owned\nowner: ana@acme.example\n{nodes}")
    (tmp_path / "wrong.yaml").write_text(f"name: owned\nowner: ana\n{nodes}")
    done = arroyo("validate", "owned.yaml", "wrong.yaml")
    assert "owned.yaml: valid" in done.stdout
    assert "wrong.yaml:2:8: an owner is an address of mail" in done.stderr
    assert '"owner"' in arroyo("schema").stdout
    assert "has no key 'owner'" in arroyo("validate", "owned.yaml", plugins=None).stderr


def test_a_plugin_adds_a_kind_of_storage(site, tmp_path):
    code = f"""
from arroyo_core.state import get_storage_provider
from arroyo_core.state.exclusive import Proof, required_proof
storage = get_storage_provider("acme://{tmp_path}/kept")
storage.write("a", b"1")
print(storage.read("a"), required_proof(storage) is Proof.NONE)
"""
    (tmp_path / "use.py").write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, "use.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "b'1' True\n", done.stderr
    assert (tmp_path / "kept" / "a").read_bytes() == b"1"


def test_plugins_says_what_a_distribution_adds(arroyo):
    text = arroyo("plugins").stdout
    assert "acme-everything 1.0" in text
    assert "adds commands, languages, sections, storage" in text


@pytest.mark.parametrize("command", ["fmt", "test", "dlq"])
def test_a_command_of_a_distribution_that_is_missing_says_which(arroyo, command, monkeypatch):
    monkeypatch.setenv("ARROYO_BLOCK_PLUGINS", "arroyo-devtools,arroyo-testing,arroyo-dlq")
    done = arroyo(command, "x.yaml")
    owner = {"fmt": "arroyo-devtools", "test": "arroyo-testing", "dlq": "arroyo-dlq"}[command]
    assert done.returncode == 2
    assert f"pip install {owner}" in done.stderr


def test_a_misspelled_command_is_guessed(arroyo):
    done = arroyo("vaildate", "x.yaml")
    assert done.returncode == 2
    assert "did you mean 'validate'?" in done.stderr


def test_a_pipeline_with_tests_is_valid_without_the_distribution_that_runs_them(arroyo, tmp_path, monkeypatch):
    monkeypatch.setenv("ARROYO_BLOCK_PLUGINS", "arroyo-testing")
    (tmp_path / "p.yaml").write_text(
        "name: p\nnodes:\n  - {id: rows, operator: impulse.source, config: {count: 1}}\n"
        "  - {id: out, operator: std.blackhole, inputs: [rows]}\ntests:\n  - {name: x}\n"
    )
    assert arroyo("validate", "p.yaml").returncode == 0
