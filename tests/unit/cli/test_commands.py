import json
import os
import subprocess
import sys
import types

import pytest

from arroyo_core.api import Origin, Registry
from arroyo_core.cli import CommandGroup, Commands
from arroyo_core.cli.commands import RootParser
from arroyo_core.cli.diagnostics import render_mistake
from arroyo_core.cli.main import main, parse
from arroyo_core.errors import ExternalError, Location, OperatorError, PipelineError, SetupError
from arroyo_core.plugin import PluginReport, PluginSet
from arroyo_core.runtime.watch import EpochTimeoutError
from arroyo_core.state.failures import DamagedStateError, EpochTakenError, FencedError, RemovedStateError

GOOD = """\
name: good
nodes:
  - {id: bids, operator: nexmark.source, config: {events: 1000}}
  - {id: big, operator: std.filter, inputs: [bids], config: {predicate: "price > 100"}}
  - {id: out, operator: std.blackhole, inputs: [big]}
"""
BAD = GOOD.replace("std.filter", "std.fliter").replace("good", "b d")


@pytest.fixture
def pipeline(tmp_path):
    def write(text, name="p.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def test_validate_accepts_a_good_pipeline(pipeline, capsys):
    path = pipeline(GOOD)
    assert main(["validate", path]) == 0
    assert capsys.readouterr().out == f"{path}: valid (3 nodes, 1 chain, 1 wave)\n"


def test_validate_checks_every_file_and_fails_for_one(pipeline, capsys):
    good, bad = pipeline(GOOD), pipeline(BAD, "bad.yaml")
    assert main(["validate", bad, good]) == 2
    shown = capsys.readouterr()
    assert f"{good}: valid" in shown.out
    assert shown.err.endswith(f"{bad}: 2 mistakes\n")


def test_validate_shows_the_line_and_a_caret(pipeline, capsys):
    path = pipeline(BAD)
    main(["validate", path])
    expected = f"""\
{path}:4:25: there is no operator 'std.fliter'
  4 |   - {{id: big, operator: std.fliter, inputs: [bids], config: {{predicate: "price > 100"}}}}
    |                         ^^^^^^^^^^
      did you mean std.filter?
"""
    assert expected in capsys.readouterr().err


def test_validate_lists_mistakes_as_json(pipeline, capsys):
    path = pipeline(BAD)
    assert main(["validate", "--format", "json", path]) == 2
    shown = capsys.readouterr()
    name, operator = json.loads(shown.out)
    assert shown.err == ""
    assert name["value"] == "b d"
    assert (operator["file"], operator["line"], operator["column"]) == (path, 4, 25)
    assert operator["value"] == "std.fliter"
    assert operator["suggestion"] == "std.filter"
    assert "std.filter" in operator["allowed"]


def test_validate_prints_an_empty_json_list_for_a_good_pipeline(pipeline, capsys):
    assert main(["validate", "--format", "json", pipeline(GOOD)]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_missing_file_is_a_mistake_of_the_user(tmp_path, capsys):
    assert main(["validate", str(tmp_path / "none.yaml")]) == 2
    assert "No such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("view", "begin"), [("text", "Pipeline"), ("mermaid", "flowchart"), ("dot", "digraph"), ("json", "{")]
)
def test_plan_has_four_formats(pipeline, capsys, view, begin):
    assert main(["plan", pipeline(GOOD), "--format", view]) == 0
    assert capsys.readouterr().out.startswith(begin)


def test_plan_takes_a_parallelism(pipeline, capsys):
    assert main(["plan", pipeline(GOOD), "--parallelism", "7"]) == 0
    assert "7 subtasks" in capsys.readouterr().out


def test_plan_of_a_broken_pipeline_shows_its_mistakes(pipeline, capsys):
    assert main(["plan", pipeline(BAD)]) == 2
    shown = capsys.readouterr()
    assert "did you mean std.filter?" in shown.err
    assert shown.out == ""


@pytest.mark.parametrize(
    "arguments",
    [[], ["nonsense"], ["plan"], ["plan", "p.yaml", "--parallelism", "0"], ["plan", "p.yaml", "--format", "svg"]],
)
def test_wrong_arguments_exit_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


def test_version_is_shown(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("arroyo-core 0.")


@pytest.fixture
def reports(monkeypatch):
    found = [
        PluginReport("acme", Origin("acme-ops", "1.2"), "acme.plugin", operators=("acme.a", "acme.b"), udfs=("f",)),
        PluginReport("sad", Origin("sad-ops", "0.1"), "sad.plugin", error="ImportError: no module named 'kafka'"),
        PluginReport("shut", Origin("shut-ops", "0.2"), "shut.plugin", is_blocked=True),
    ]
    monkeypatch.setattr("arroyo_core.cli.plugins.installed_plugins", lambda: PluginSet(Registry(), found))
    return found


def test_plugins_lists_operators_and_failures(reports, capsys):
    assert main(["plugins"]) == 0
    assert (
        capsys.readouterr().out
        == """\
acme-ops 1.2  (plugin 'acme', module acme.plugin)
  acme.a
  acme.b
  f()  UDF

sad-ops 0.1  (plugin 'sad', module sad.plugin)
  FAILED: ImportError: no module named 'kafka'

shut-ops 0.2  (plugin 'shut', module shut.plugin)
  blocked by ARROYO_BLOCK_PLUGINS
"""
    )


def test_plugins_are_listed_as_json(reports, capsys):
    assert main(["plugins", "--format", "json"]) == 0
    acme, sad, shut = json.loads(capsys.readouterr().out)
    assert (acme["distribution"], acme["version"], acme["operators"]) == ("acme-ops", "1.2", ["acme.a", "acme.b"])
    assert sad["error"] == "ImportError: no module named 'kafka'"
    assert shut["is_blocked"] is True


def test_without_plugins_the_list_says_how_to_get_some(monkeypatch, capsys):
    monkeypatch.setattr("arroyo_core.cli.plugins.installed_plugins", lambda: PluginSet(Registry(), []))
    assert main(["plugins"]) == 0
    assert "pip install arroyo-std" in capsys.readouterr().out


@pytest.fixture
def runs(monkeypatch):
    """Puts a stand-in in place of the module that needs Spark; returns what it was called with."""
    seen = []

    def install(answer):
        def run(args):
            seen.append(args)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        monkeypatch.setitem(sys.modules, "arroyo_core.cli.run", types.SimpleNamespace(run=run))
        return seen

    return install


def test_run_is_given_its_arguments(runs):
    seen = runs(0)
    arguments = [
        "run",
        "p.yaml",
        "--parallelism",
        "3",
        "--master",
        "local[2]",
        "--conf",
        "a=1",
        "--conf",
        "b=2=3",
        "--debug",
    ]
    assert main(arguments) == 0
    (args,) = seen
    assert (args.file, args.parallelism, args.master, args.debug) == ("p.yaml", 3, "local[2]", True)
    assert args.conf == ["a=1", "b=2=3"]


def test_debug_may_stand_before_the_command(runs):
    seen = runs(0)
    main(["--debug", "run", "p.yaml"])
    main(["run", "p.yaml"])
    assert [args.debug for args in seen] == [True, False]


@pytest.mark.parametrize(
    ("error", "code", "shown"),
    [
        (SetupError("Java 17 is missing"), 2, "arroyo: Java 17 is missing"),
        (ExternalError("S3 is down"), 1, "arroyo: S3 is down"),
        (ValueError("what is this"), 1, "arroyo: ValueError: what is this (more with --debug)"),
        (OperatorError("boom", operator_id="a", subtask=0, epoch=1, traceback="deep"), 2, "operator 'a', subtask 0"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (FencedError("generation 2 owns the job now"), 3, "arroyo: generation 2 owns the job now"),
        (EpochTakenError("taken"), 3, "arroyo: taken"),
        (DamagedStateError("a file is cut"), 4, "`arroyo checkpoints repair URL` goes back to the last checkpoint"),
        (RemovedStateError("the folder is gone"), 4, "arroyo: the folder is gone"),
        (EpochTimeoutError("epoch 7 made no progress"), 5, "arroyo: epoch 7 made no progress"),
        (
            OperatorError("cut", operator_id="a", subtask=0, epoch=1, traceback="", cause_kind="DamagedStateError"),
            4,
            "operator 'a', subtask 0",
        ),
    ],
)
def test_errors_become_exit_codes_without_a_traceback(runs, capsys, error, code, shown):
    runs(error)
    assert main(["run", "p.yaml"]) == code
    text = capsys.readouterr().err
    assert shown in text
    assert "Traceback" not in text
    assert "deep" not in text


def test_debug_shows_tracebacks(runs, capsys):
    runs(OperatorError("boom", operator_id="a", subtask=0, epoch=1, traceback="deep inside"))
    main(["run", "p.yaml", "--debug"])
    text = capsys.readouterr().err
    assert "Traceback" in text
    assert "deep inside" in text


def test_a_reader_that_stops_reading_gets_no_traceback():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-c", "import sys; from arroyo_core.cli.main import main; sys.exit(main())", "plugins"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_the_caret_stands_under_its_column_behind_tabs(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text("a:\t\tbad\n")
    error = PipelineError(
        "no", at=Location(str(path), 1, 5), value="bad", allowed=[f"n{number}" for number in range(20)]
    )
    caret, allowed = render_mistake(error).splitlines()[2:]
    assert caret == "    |   \t\t^^^"
    assert allowed.endswith("n11 and 8 more")


def test_every_command_has_help(capsys):
    for command in ("run", "validate", "plan", "plugins"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert f"usage: arroyo {command}" in capsys.readouterr().out


@pytest.mark.parametrize("former", [["--json"], ["--format", "json"]])
def test_a_former_spelling_works_with_a_hint(former, pipeline, capsys):
    assert main(["validate", *former, pipeline(GOOD)]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == []
    assert ("--json is now --format json" in captured.err) == (former == ["--json"])


def test_tables_have_a_hint_for_their_former_format(tmp_path, capsys):
    assert main(["checkpoints", "ls", str(tmp_path), "--format", "table"]) == 2
    assert "--format table is now --format text" in capsys.readouterr().err


def test_plan_writes_to_a_file(pipeline, tmp_path, capsys):
    assert main(["plan", pipeline(GOOD), "--format", "dot"]) == 0
    printed = capsys.readouterr().out
    assert main(["plan", pipeline(GOOD), "--format", "dot", "-o", str(tmp_path / "plan.dot")]) == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "plan.dot").read_text() == printed
    assert main(["plan", pipeline(GOOD), "-o", str(tmp_path / "none" / "plan.txt")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_debug_may_stand_after_a_nested_action(tmp_path, capsys):
    assert main(["checkpoints", "ls", "--debug", str(tmp_path)]) == 2
    assert "Traceback" in capsys.readouterr().err
    assert main(["checkpoints", "ls", str(tmp_path)]) == 2
    assert "Traceback" not in capsys.readouterr().err


def headings(text):
    """The commands below each heading of a help text."""
    found = {}
    for line in text.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            commands = found[line[:-1]] = []
        elif line.startswith("  ") and not line.startswith("   ") and found:
            commands.append(line.split()[0])
    return found


def test_help_lists_commands_by_purpose(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    found = headings(capsys.readouterr().out)
    assert list(found) == [*list(CommandGroup)[:-1], "options"]
    ours = ["run", "stop", "rescale"]
    assert found["run jobs"] == [*ours, "serve", "ls", "logs", "report", "ps", "status", "pack"]
    assert {"checkpoints", "state", "dlq", "files", "iceberg", "kafka"} == set(found["look into state and output"])


@pytest.fixture
def commands():
    return Commands(RootParser(prog="arroyo"))


def test_groups_of_plugins_stand_before_the_other_commands(commands):
    commands.add_parser("lost", help="has no group")
    commands.add_parser("pay", help="of its own group", group="money")
    commands.add_parser("go", help="of a group that there is", group=CommandGroup.JOBS)
    text = commands.root.format_help()
    assert list(headings(text)) == ["run jobs", "money", "other commands", "options"]


def test_a_command_that_two_plugins_claim_is_an_error_that_names_both(commands, capsys):
    for name, version, others in (("acme-a", "1.0", "one"), ("acme-b", "2.0", "two"), ("acme-c", "3.0", "three")):
        with commands.registering(Origin(name, version)):
            commands.add_parser("pay", help="claimed").set_defaults(command=others)
            commands.add_parser(others, help="of one").set_defaults(command=others)
    # What else these plugins add is there.
    assert [commands.root.parse_args([name]).command for name in ("one", "two", "three")] == ["one", "two", "three"]
    assert "pay" not in commands.root.format_help()
    with pytest.raises(SystemExit) as caught:
        commands.root.parse_args(["pay", "--much"])
    assert caught.value.code == 2
    assert "the command 'pay' is claimed by acme-a 1.0 and by acme-b 2.0 and by acme-c 3.0" in capsys.readouterr().err


def test_an_option_of_arroyo_itself_may_be_a_plugins(commands):
    commands.add_parser("go", help="goes")
    assert commands.are_complete_for(["go", "--far"])
    assert commands.are_complete_for(["--debug", "go"])
    assert not commands.are_complete_for(["--elsewhere=URL", "go"])
    assert not commands.are_complete_for(["--elsewhere", "URL", "go"])


def test_a_plugin_may_do_something_else_instead_of_a_command(monkeypatch):
    def parser_with_an_option(arguments):
        parser = RootParser(prog="arroyo")
        parser.add_argument("--elsewhere", action="store_true")
        Commands(parser).add_parser("go", help="goes").set_defaults(command="here")
        parser.redirections.append(lambda args: f"{args.command_name} elsewhere" if args.elsewhere else None)
        return parser

    monkeypatch.setattr("arroyo_core.cli.main._parser", parser_with_an_option)
    assert parse(["go"]).command == "here"
    assert parse(["--elsewhere", "go"]).command == "go elsewhere"


def test_a_command_of_the_core_cannot_be_claimed(commands):
    commands.add_parser("run", help="of the core").set_defaults(command="core")
    with commands.registering(Origin("acme-a", "1.0")), pytest.raises(ValueError, match="the core has a command 'run'"):
        commands.add_parser("run", help="claimed")
    assert commands.root.parse_args(["run"]).command == "core"
