"""What a third party can add with a distribution of its own, by its hooks alone: a real one, found by real commands."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from arroyo_core.plugin import hookspec

PAGE = Path(__file__).parents[3] / "docs" / "hooks.md"

#: Beside what the page adds.
STORAGE = """
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
"""


def block(name: str) -> str:
    """A file of the page hooks.md."""
    found = re.search(rf"^```\w+\n# {re.escape(name)}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder on the path with the distribution `acme-tools`."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "acme_tools.py").write_text(block("acme/acme_tools.py") + STORAGE)
    info = folder / "acme_tools-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-tools\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[arroyo_core]\nacme = acme_tools\n")
    return folder


@pytest.fixture
def arroyo(site, tmp_path):
    """Runs `arroyo` where the distribution is installed."""

    def run(*arguments: str, plugins: Path | None = site) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(plugins or "")}
        command = [sys.executable, "-m", "arroyo_core", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def owned(tmp_path):
    (tmp_path / "owned.yaml").write_text(block("owned.yaml"))
    (tmp_path / "five.count").write_text(block("five.count"))


def test_what_the_page_shows_is_what_comes(arroyo, owned):
    shown = re.search(r"^```text\n(\$ .*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)[1]
    commands = re.findall(r"^\$ arroyo (.*)\n((?:[^$].*\n)*)", shown, re.M)
    assert len(commands) == 2
    for line, output in commands:
        assert arroyo(*line.split()).stdout == output


def test_a_command_is_listed_and_gone_with_its_distribution(arroyo, owned):
    assert "say who answers for a pipeline" in arroyo("--help").stdout
    assert arroyo("owner", "owned.yaml", plugins=None).returncode == 2


def test_two_distributions_with_one_command_are_both_named(arroyo, owned, site, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "rival.py").write_text((site / "acme_tools.py").read_text())
    info = other / "rival-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rival\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[arroyo_core]\nrival = rival\n")
    done = arroyo("owner", "owned.yaml", plugins=f"{site}{os.pathsep}{other}")
    assert done.returncode == 2
    assert "the command 'owner' is claimed by acme-tools 1.0 and by rival 2.0" in done.stderr
    # Whoever does not use it need not know.
    assert "owner" not in arroyo("validate", "--help", plugins=f"{site}{os.pathsep}{other}").stderr


def test_the_names_that_the_hooks_promise_are_there():
    for name in re.findall(r"`(arroyo_core\.[\w.]+)`", Path(hookspec.__file__).read_text(encoding="utf-8")):
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


def test_mistakes_in_a_language_have_their_place(arroyo, tmp_path):
    (tmp_path / "bad.count").write_text("many")
    assert "bad.count:1:1: expected a number of rows" in arroyo("validate", "bad.count").stderr


def test_a_section_is_checked_and_in_the_schema(arroyo, owned, tmp_path):
    (tmp_path / "wrong.yaml").write_text(block("owned.yaml").replace("ana@acme.example", "ana"))
    assert "wrong.yaml:2:8: an owner is a mail address" in arroyo("validate", "wrong.yaml").stderr
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
    assert "acme-tools 1.0" in text
    assert "adds commands, languages, sections, storage" in text


@pytest.mark.parametrize(
    ("command", "owner"),
    [
        ("fmt x.yaml", "arroyo-devtools"),
        ("test x.yaml", "arroyo-testing"),
        ("dlq x.yaml", "arroyo-dlq"),
        ("udf build x.py", "arroyo-devtools"),
        ("plan x.yaml --format dot", "arroyo-devtools"),
        ("ps", "arroyo-jobs"),
        ("checkpoints repair ./state", "arroyo-jobs"),
        ("run x.yaml y.yaml", "arroyo-jobs"),
        ("run .", "arroyo-jobs"),
        ("run x.yaml --metrics-port 9100", "arroyo-jobs"),
    ],
)
def test_what_a_missing_distribution_has_says_which(arroyo, command, owner, monkeypatch):
    monkeypatch.setenv("ARROYO_BLOCK_PLUGINS", "arroyo-devtools,arroyo-testing,arroyo-dlq,arroyo-jobs")
    done = arroyo(*command.split())
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
