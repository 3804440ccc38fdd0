"""What shells complete. Bash is asked as it asks itself: with the words of the line and the place of the cursor."""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys

import pytest
from arroyo_devtools.completion.words import Kind, read_commands

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
        return found.stdout.split()

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


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_every_command_and_option_is_in_every_script(script, shell):
    text = script(shell).read_text()
    for command in read_commands(_parser()):
        assert command.name in text
        for option in command.options:
            assert all(flag.lstrip("-") in text for flag in option.flags)
    assert "--operators" in text


def test_the_script_for_zsh_is_one_that_bash_reads_too(script):
    if BASH is None:
        pytest.skip("there is no bash")
    subprocess.run([BASH, "-n", str(script("zsh"))], check=True)
    assert script("zsh").read_text().startswith("#compdef arroyo\n")


def test_without_a_shell_the_choices_are_named(capsys):
    assert main(["completion"]) == 2
    assert "name the shell: bash, zsh, fish" in capsys.readouterr().err


def test_words_are_read_off_a_parser():
    parser = argparse.ArgumentParser(prog="x")
    commands = parser.add_subparsers()
    one = commands.add_parser("one", help="the first")
    one.add_argument("file", metavar="FILE")
    one.add_argument("-n", "--number", type=int, default=3, help="default: %(default)s")
    one.add_argument("--secret", help=argparse.SUPPRESS)
    one.add_argument("--way", choices=("a", "b"))
    whole, found = read_commands(parser)
    assert (whole.path, whole.subcommands, found.path, found.help) == ((), ("one",), ("one",), "the first")
    assert [option.flags for option in found.options] == [("-h", "--help"), ("-n", "--number"), ("--way",)]
    assert [option.value is None for option in found.options] == [True, False, False]
    assert found.options[1].help == "default: 3"
    assert found.options[2].value.choices == ("a", "b")
    assert [value.kind for value in found.values] == [Kind.FILE]
