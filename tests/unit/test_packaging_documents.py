"""What the documents show is true: code runs, links lead somewhere, targets exist."""

import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest
from google.protobuf import struct_pb2

from arroyo_core.state.global_keyed_map import MAX_INLINE_BYTES

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
    *sorted((ROOT / "udfs").glob("*.md")),
]


def document_id(path):
    return str(path.relative_to(ROOT))


def python_blocks(path):
    return re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_operator_and_its_test_in_write_a_plugin_run_as_shown(monkeypatch):
    plugin, settings, constructor, test, conformance = python_blocks(ROOT / "docs" / "write-a-plugin.md")
    names = {"batch": pa.record_batch({"word": ["a", "b", "a"]}), "RunningCountConfig": struct_pb2.Struct}
    exec(compile(plugin, "plugin.py", "exec"), names)
    exec(compile(constructor, "constructor.py", "exec"), names)
    exec(compile(test, "test_plugin.py", "exec"), names)
    assert names["harness"].output.num_rows == 6
    exec(compile(settings, "settings.py", "exec"), names)
    assert names["CountBySize"](3_600_000_000, "price").state_settings([]) == {"size": "1h", "column": "price"}
    # The module of the page, by the name that the page gives it.
    module = ModuleType("acme.plugin")
    exec(compile(plugin, "plugin.py", "exec"), vars(module))
    monkeypatch.setitem(sys.modules, "acme.plugin", module)
    exec(compile(conformance, "test_conformance.py", "exec"), names)
    checks = {str(check): check for check in names["conformance"].checks()}
    for name in ("any_cut_into_epochs", "no_state_outside_tables", "any_parallelism", "config_mistakes"):
        checks[f"acme.running_count::{name}"].run()


def test_the_functions_in_udfs_are_declared_as_shown():
    names = {}
    for number, block in enumerate(python_blocks(ROOT / "docs" / "udfs.md")):
        exec(compile(block, f"udfs-{number}.py", "exec"), names)
    assert names["Mode"].signature == "mode(value: string) -> string"
    batch = pa.record_batch({"word": ["a", "b"]})
    stamped = names["stamped"]
    assert stamped.evaluate(batch, stamped.derive_schema(batch.schema)).column("seen_at").null_count == 0


@pytest.mark.parametrize("page", ["outside-services.md", "write-a-sink.md", "state-format.md"])
def test_the_limit_of_what_is_staged_in_metadata_is_the_one_that_pages_give(page):
    assert f"{MAX_INLINE_BYTES // 1024} KiB" in (ROOT / "docs" / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("document", DOCUMENTS, ids=document_id)
def test_links_inside_the_repository_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=document_id)
def test_every_make_target_that_is_named_exists(document):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"(?:`|^    |^\$ )make ([a-z-]+)", document.read_text(encoding="utf-8"), re.MULTILINE))
    assert named <= targets


def test_every_command_of_the_readme_is_one_of_arroyo():
    from arroyo_core.cli.main import main

    commands = set(re.findall(r"(?:^\$ |`)arroyo ([a-z]+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.M))
    assert {"run", "validate", "test"} <= commands
    for command in commands:
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0


def shown_commands(document):
    """The lines that call `arroyo`, without comments and without what follows a pipe or redirection."""
    for line in re.findall(r"^(?: {4})?(?:\$ )?arroyo (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE):
        yield re.split(r"\s+(?:#\s|[|>&])", line)[0]


def test_every_command_that_is_shown_has_the_arguments_that_arroyo_knows():
    from arroyo_core.cli.main import _parser

    parser = _parser()
    # The reference is made from the parser itself, and shows forms of commands.
    written = [document for document in DOCUMENTS if "reference" not in document.parts]
    commands = [(document_id(document), command) for document in written for command in shown_commands(document)]
    assert len(commands) > 50
    for document, command in commands:
        # That page adds a command.
        if (document, command.split()[0]) == ("docs/hooks.md", "owner"):
            continue
        try:
            parser.parse_args(shlex.split(command))
        except SystemExit:
            pytest.fail(f"{document}: arroyo {command}")
