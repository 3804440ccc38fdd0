"""`arroyo docs` and `arroyo schema`, and the pages of docs/reference."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
from arroyo_devtools.commands import docs as docs_command

from arroyo_core.api import Origin, Registry
from arroyo_core.cli.main import main
from arroyo_core.plugin import PluginReport, PluginSet

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = ROOT / "docs" / "reference"


def test_all_operators_and_functions_are_listed(capsys):
    assert main(["docs"]) == 0
    shown = capsys.readouterr().out
    for part in (
        "Sources\n",
        "Operators\n",
        "Sinks\n",
        "User functions\n",
        "std.filter ",
        "nexmark.source ",
        "geo_hash,",
    ):
        assert part in shown


def test_an_operator_is_explained(capsys):
    assert main(["docs", "std.deduplicate"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("std.deduplicate: an operator with 1 input, of arroyo-std ")
    for part in (
        "  keys  (list of string, required)\n",
        "  ttl  (duration, default: 24h)\n",
        "- first: The first one; it is sent at once",
        "\nOutput\n",
        "\nState\n",
        "\nExample\n  - id: once\n    operator: std.deduplicate\n",
    ):
        assert part in shown


def test_lines_fit_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["docs", "std.tumbling_window"]) == 0
    before_example = capsys.readouterr().out.partition("\nExample\n")[0]
    assert max(map(len, before_example.splitlines())) <= 60


def test_the_prefix_may_be_left_out(capsys):
    assert main(["docs", "deduplicate"]) == 0
    assert capsys.readouterr().out.startswith("std.deduplicate:")


def test_a_user_function_is_explained(capsys):
    assert main(["docs", "geo_distance_m"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("geo_distance_m(lat: double")
    assert "arroyo-udf-geo" in shown


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("std.fliter", "did you mean std.filter?"),
        ("fliter", "did you mean std.filter?"),
        ("flink.filter", "did you mean std.filter?"),
        ("geo_hsh", "did you mean geo_hash?"),
        ("xyzzy", "`arroyo docs` lists them all"),
        ("source", "there is no operator"),
    ],
)
def test_an_unknown_name_is_a_mistake_with_a_hint(name, hint, capsys):
    assert main(["docs", name]) == 2
    assert hint in capsys.readouterr().err


def test_an_operator_of_a_plugin_that_failed_says_why(capsys, monkeypatch):
    report = PluginReport("acme", Origin("acme-ops", "1"), "acme.plugin", error="ImportError: no kafka")
    monkeypatch.setattr(docs_command, "installed_plugins", lambda: PluginSet(Registry(), [report]))
    assert main(["docs", "acme.source"]) == 2
    assert "no kafka" in capsys.readouterr().err


def test_without_plugins_there_is_a_hint(capsys, monkeypatch):
    monkeypatch.setattr(docs_command, "installed_plugins", lambda: PluginSet(Registry(), []))
    assert main(["docs"]) == 0
    assert "pip install arroyo-std" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [["--format", "markdown"], ["-o", "x"], ["std.filter", "--format", "markdown", "-o", "x"]]
)
def test_the_reference_is_written_as_a_whole(arguments, capsys):
    assert main(["docs", *arguments]) == 2
    assert "arroyo docs --format markdown -o DIR" in capsys.readouterr().err


def test_docs_reference_is_up_to_date(tmp_path, capsys):
    assert main(["docs", "--format", "markdown", "-o", str(tmp_path)]) == 0

    def pages(folder):
        return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*.md")}

    made, kept = pages(tmp_path), pages(REFERENCE)
    stale = sorted(path for path in made.keys() | kept.keys() if made.get(path) != kept.get(path))
    assert stale == [], "run 'make docs-reference' and commit the result"


def test_links_of_the_reference_lead_somewhere():

    for page in REFERENCE.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)[^)]*\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_writing_the_reference_again_changes_nothing_and_removes_what_is_gone(tmp_path, capsys):
    main(["docs", "--format", "markdown", "-o", str(tmp_path)])
    gone = tmp_path / "operators" / "acme.gone.md"
    gone.write_text((tmp_path / "cli.md").read_text())
    own = tmp_path / "operators" / "own.md"
    own.write_text("# Written by hand\n")
    capsys.readouterr()
    assert main(["docs", "--format", "markdown", "-o", str(tmp_path)]) == 0
    assert capsys.readouterr().out.rstrip().endswith("pages, 1 changed")
    assert not gone.exists()
    assert own.exists()


def test_a_folder_that_cannot_be_written_is_named(tmp_path, capsys):
    file = tmp_path / "file"
    file.touch()
    assert main(["docs", "--format", "markdown", "-o", str(file)]) == 2
    assert f"cannot write the reference to {file}" in capsys.readouterr().err


def test_the_schema_is_printed_or_written(tmp_path, capsys):
    assert main(["schema"]) == 0
    printed = capsys.readouterr().out
    jsonschema.Draft7Validator.check_schema(json.loads(printed))
    path = tmp_path / "arroyo.schema.json"
    assert main(["schema", "-o", str(path)]) == 0
    assert path.read_text(encoding="utf-8") == printed
    assert "arroyo-std" in capsys.readouterr().out
    assert main(["schema", "--tests"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "arroyo tests"


def test_a_schema_that_cannot_be_written_is_a_mistake(tmp_path, capsys):
    assert main(["schema", "-o", str(tmp_path)]) == 2
    assert f"cannot write {tmp_path}" in capsys.readouterr().err


def test_the_former_option_works_with_a_hint(tmp_path, capsys):
    assert main(["docs", "--markdown", "-o", str(tmp_path)]) == 0
    assert "--markdown is now --format markdown" in capsys.readouterr().err
    assert (tmp_path / "cli.md").exists()
