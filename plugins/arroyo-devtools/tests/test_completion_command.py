"""What shells complete. Bash is asked as it asks itself: with the words of the line and the place of the cursor."""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys

import pytest
from arroyo_devtools.completion import completion_script

from arroyo_core.cli.main import _parser, main

BASH = shutil.which("bash")
ASK = """\
arroyo() { "$PYTHON" -c 'import sys; from arroyo_core.cli.main import main; sys.exit(main())' "$@"; }
source "$SCRIPT"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_arroyo arroyo
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    def printed(shell):
        path = tmp_path_factory.mktemp("completion") / f"arroyo.{shell}"
        with path.open("w") as file, contextlib.redirect_stdout(file):
            assert main(["completion", shell]) == 0
        return path

    return printed


@pytest.fixture(scope="module")
def complete(script):
    if BASH is None:
        pytest.skip("there is no bash")
    path = script("bash")

    def call(*words, cwd=None):
        environment = {**os.environ, "PYTHON": sys.executable, "SCRIPT": str(path)}
        asked = [BASH, "--norc", "--noprofile", "-c", ASK, "bash", "arroyo", *words]
        found = subprocess.run(asked, check=True, capture_output=True, text=True, env=environment, cwd=cwd)
        assert found.stderr == ""
        return found.stdout.splitlines() if found.stdout.strip() else []

    return call


def test_commands_are_completed(complete):
    found = complete("")
    assert {"run", "validate", "plan", "lint", "fmt", "completion", "udf"} <= set(found)
    assert complete("val") == ["validate"]
    assert "--version" in complete("--")


def test_commands_below_a_command_are_completed(complete):
    assert {"build", "push", "ls"} <= set(complete("udf", ""))
    assert complete("udf", "bu") == ["build"]
    assert "run" not in complete("udf", "")


def test_options_are_completed_for_their_command(complete):
    assert complete("plan", "--fo") == ["--format"]
    assert complete("plan", "p.yaml", "--fo") == ["--format"]
    assert complete("--debug", "plan", "--par") == ["--parallelism"]
    assert complete("lint", "--par") == []
    assert "--set" in complete("lint", "-")


def test_choices_of_options_and_of_values_are_completed(complete):
    assert set(complete("plan", "--format", "")) == {"text", "json", "mermaid", "dot"}
    assert complete("plan", "--format", "me") == ["mermaid"]
    assert complete("plan", "--format", "=", "me") == ["mermaid"]
    assert set(complete("plan", "--format", "=")) == {"text", "json", "mermaid", "dot"}
    assert set(complete("completion", "")) == {"bash", "zsh", "fish"}
    assert complete("run", "p.yaml", "--parallelism", "") == []


def test_files_and_folders_are_completed(complete, tmp_path):
    (tmp_path / "pipeline.yaml").touch()
    (tmp_path / "parts").mkdir()
    assert set(complete("lint", "p", cwd=tmp_path)) == {"pipeline.yaml", "parts"}
    assert set(complete("lint", "pipeline.yaml", "p", cwd=tmp_path)) == {"pipeline.yaml", "parts"}
    assert set(complete("lint", "--format", "json", "p", cwd=tmp_path)) == {"pipeline.yaml", "parts"}
    assert complete("udf", "build", "-o", "p", cwd=tmp_path) == ["parts"]


def test_a_name_with_a_blank_is_one_name(complete, tmp_path):
    (tmp_path / "my pipeline.yaml").touch()
    (tmp_path / "pipeline.yaml").touch()
    assert complete("lint", "my pi", cwd=tmp_path) == ["my pipeline.yaml"]


def test_a_value_that_is_called_like_a_command_is_none(complete):
    assert complete("lint", "plan", "--par") == []
    assert complete("plan", "--set", "run", "--fo") == ["--format"]


def test_operators_are_completed_for_docs(complete):
    assert complete("docs", "std.top") == ["std.top_n"]
    assert {"std.filter", "nexmark.source"} <= set(complete("docs", ""))


def test_names_of_operators_are_those_that_are_installed(capsys):
    assert main(["completion", "--operators"]) == 0
    found = capsys.readouterr().out.split()
    assert found == sorted(found)
    assert "std.filter" in found


def options_of(parser, path=()):
    """Every command below a parser, with the options that its help shows."""
    yield (
        path,
        [option for action in parser._actions if action.help != argparse.SUPPRESS for option in action.option_strings],
    )
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield from options_of(command, (*path, name))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_option_is_in_every_script(script, shell):
    text = script(shell).read_text()
    for path, options in options_of(_parser()):
        assert all(name in text for name in path)
        assert all(option.lstrip("-") in text for option in options)
    assert "completion --operators" in text


def test_fish_completes_commands_options_choices_files_and_operators(script, tmp_path):
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("there is no fish")
    (tmp_path / "pipeline.yaml").touch()
    program = tmp_path / "bin" / "arroyo"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m arroyo_core \"$@\"\n")
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}

    def complete(line):
        asked = [fish, "--no-config", "-c", f"source {script('fish')}; complete -C {line!r}"]
        found = subprocess.run(asked, check=True, capture_output=True, text=True, env=environment, cwd=tmp_path)
        return [candidate.partition("\t")[0] for candidate in found.stdout.splitlines()]

    assert complete("arroyo val") == ["validate"]
    assert complete("arroyo udf bu") == ["build"]
    assert complete("arroyo plan --fo") == ["--format"]
    assert complete("arroyo plan --format me") == ["mermaid"]
    assert complete("arroyo plan --format=me") == ["--format=mermaid"]
    assert complete("arroyo lint pipe") == ["pipeline.yaml"]
    assert complete("arroyo lint pipeline.yaml pipe") == ["pipeline.yaml"]
    assert complete("arroyo docs std.top") == ["std.top_n"]


def test_zsh_reads_its_script(script):
    zsh = shutil.which("zsh")
    if zsh is None:
        pytest.skip("there is no zsh")
    subprocess.run([zsh, "-n", str(script("zsh"))], check=True)


def test_the_script_for_zsh_can_be_put_into_a_folder_of_functions(script):
    assert script("zsh").read_text().startswith("#compdef arroyo\n")


def test_zsh_takes_values_behind_an_equals_sign_and_any_number_of_files(script):
    text = script("zsh").read_text()
    assert '"--format=[' in text
    assert '"*:a pipeline:_files"' in text
    assert '"(*):' not in text


def test_without_a_shell_the_choices_are_named(capsys):
    assert main(["completion"]) == 2
    assert "name the shell: bash, zsh, fish" in capsys.readouterr().err


def test_metavars_say_what_is_a_file_and_what_a_folder():
    parser = argparse.ArgumentParser(prog="x")
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--into", metavar="DIR")
    parser.add_argument("--way", metavar="WAY")
    parser.add_argument("--secret", metavar="FILE", help=argparse.SUPPRESS)
    text = completion_script(parser, "bash")
    assert "_shtab_x_pos_0_COMPGEN=_arroyo_files" in text
    assert "_shtab_x___into_COMPGEN=_arroyo_dirs" in text
    assert "way_COMPGEN" not in text
    assert "secret" not in text
