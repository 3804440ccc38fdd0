"""Untrusted mode: pipelines that attack whoever looks at them, and code that does not ask before it acts."""

import argparse
import http.server
import io
import json
import os
import subprocess
import sys
import threading

import pytest

from arroyo_core.api.policy import PlanningPolicy, in_force
from arroyo_core.cli.commands import Commands, RootParser, subparsers_of
from arroyo_core.cli.confined.policies import is_untrusted
from arroyo_core.cli.main import _parser, main
from arroyo_core.cli.options import add_planning
from arroyo_core.cli.planning_time import planning_time
from arroyo_core.errors import InvalidPipelineError, SetupError

#: One process for all attacks: to start Python and to import everything takes longer than they do.
ATTACK = """
import contextlib, io, json, sys
from arroyo_core.cli import main as command_line
from arroyo_core.cli.confined.policies import policy_of
from arroyo_core.cli.confined.walls import confine
from arroyo_core.plugin import installed_plugins

installed_plugins()
folder, files = sys.argv[1], sys.argv[2:]
arguments = ["validate", "--untrusted", "--format", "json", "--allow-env", "ALLOWED", "--root", folder]
confine(policy_of(command_line.parse([*arguments, files[0]])))
answers = {}
for file in files:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        command_line.run_command(command_line.parse([*arguments, file]))
    answers[file] = json.loads(shown.getvalue())
print(json.dumps(answers))
"""

#: What code of a plugin could do without asking; each must fail. Some of it Python does not see: libraries in C.
ROGUE = """
import ctypes, json, os, socket, subprocess, sys
import pyarrow, pyarrow.csv, pyarrow.parquet
from pathlib import Path
from arroyo_core.api.policy import PlanningPolicy
from arroyo_core.cli.confined import kernel, walls

root, outside, port = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
libc = ctypes.CDLL(None, use_errno=True)
walls.confine(PlanningPolicy(is_untrusted=True, roots=(root,)))

def native_connect():
    descriptor = libc.socket(2, 1, 0)
    if descriptor < 0:
        raise OSError("no socket")

def native_open():
    if libc.open(outside.encode(), 0) < 0:
        raise OSError("not opened")

def native_exec():
    if libc.execve(b"/bin/true", None, None) < 0:
        raise OSError("not started")

actions = {
    "open": lambda: open(outside).read(),
    "os.open": lambda: os.open(outside, os.O_RDONLY),
    "list": lambda: os.listdir("/etc"),
    "write": lambda: (root / "new").write_text("x"),
    "remove": lambda: (root / "data.csv").unlink(),
    "rename": lambda: (root / "data.csv").rename(root / "other"),
    "connect": lambda: socket.create_connection(("127.0.0.1", port)),
    "datagram": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", port)),
    "resolve": lambda: socket.getaddrinfo("localhost", 80),
    "run": lambda: subprocess.run(["true"]),
    "system": lambda: os.system("true"),
    "fork": os.fork,
    "arrow map": lambda: pyarrow.memory_map(outside),
    "arrow csv": lambda: pyarrow.csv.read_csv(outside),
    "arrow file": lambda: pyarrow.OSFile(outside),
    "native socket": native_connect,
    "native open": native_open,
    "native exec": native_exec,
    "memory": lambda: bytearray(2**30),
}
done = []
for name, action in actions.items():
    try:
        action()
        done.append(name)
    except (Exception, MemoryError):
        pass
print(json.dumps({"done": done, "allowed": (root / "data.csv").read_text()}))
sys.stdout.flush()
os._exit(0)
"""

SINK = "  - {id: out, operator: std.blackhole, inputs: [a]}\n"
ZEROS = "0" * 64


def source(operator, config):
    return f"name: x\nnodes:\n  - {{id: a, operator: {operator}, config: {config}}}\n{SINK}"


#: By name: the pipeline, and the line and the words of its only mistake; None for a pipeline that is valid.
CASES = {
    "include": ("name: x\nnodes: !include /etc/passwd\n", (2, "refuses to include /etc/passwd")),
    "device": ("name: x\nnodes: !include /dev/zero\n", (2, "refuses to include /dev/zero")),
    "variable": (source("filesystem.source", '{path: "{server}/${SECRET}/x.csv"}'), (3, "--allow-env SECRET")),
    "allowed": (source("filesystem.source", '{path: "{root}/${ALLOWED}.csv"}'), None),
    "default": (source("filesystem.source", '{path: "{root}/${SECRET:-data}.csv"}'), None),
    "url": (source("filesystem.source", '{path: "{server}/x.csv"}'), (3, "needs the network")),
    "chained": (source("filesystem.source", '{path: "zip://x.csv::{server}/x.zip"}'), (3, "needs the network")),
    "outside": (source("filesystem.source", "{path: /etc/passwd, format: csv}"), (3, "is not below")),
    "glob": (source("filesystem.source", '{path: "/etc/pass*", format: csv}'), (3, "is not below")),
    "link": (source("filesystem.source", '{path: "{root}/link.csv"}'), (3, "is not below")),
    "declared": (source("filesystem.source", '{path: "s3://b/x", format: csv, schema: {n: int64}}'), None),
    "bundle": (
        f'name: x\nudfs: [{{url: "{{server}}/x.whl", sha256: "{ZEROS}"}}]\nnodes:\n'
        "  - {id: a, operator: impulse.source, config: {count: 1}}\n" + SINK,
        (2, "refuses the bundle"),
    ),
    "local bundle": (
        'name: x\nudfs: [{url: "{root}/x.whl"}]\nnodes:\n'
        "  - {id: a, operator: impulse.source, config: {count: 1}}\n" + SINK,
        (2, "refuses the bundle"),
    ),
    "import": (
        "name: x\nnodes:\n  - {id: s, operator: impulse.source, config: {count: 1}}\n"
        '  - {id: a, operator: std.process, inputs: [s], config: {function: "this:X", keys: [counter]}}\n' + SINK,
        (4, "refuses to import this:X"),
    ),
    "registry": (
        source(
            "kafka.source",
            '{bootstrap_servers: "localhost:9", topic: t, format: {name: avro, registry: {url: "{server}"}}}',
        ),
        (3, "refuses to ask the schema registry"),
    ),
    "client": (
        source(
            "kafka.source",
            '{bootstrap_servers: "localhost:9", topic: t, schema: {n: int64}, format: json, '
            'client: {plugin.library.paths: "{root}/evil.so"}}',
        ),
        None,
    ),
    "schema file": (
        source(
            "kafka.source",
            '{bootstrap_servers: "localhost:9", topic: t, format: {name: avro, schema_file: /etc/passwd}}',
        ),
        (3, "is not below"),
    ),
    "compiler": (
        source(
            "kafka.source",
            '{bootstrap_servers: "localhost:9", topic: t, '
            'format: {name: protobuf, schema_file: "{root}/x.proto", message: M}}',
        ),
        (3, "refuses to start the compiler"),
    ),
    "lookup": (
        "name: x\nnodes:\n  - {id: s, operator: impulse.source, config: {count: 1}}\n"
        "  - {id: a, operator: std.lookup_join, inputs: [s], "
        'config: {on: [{left: counter, right: n}], table: {path: "{server}/x.csv"}}}\n' + SINK,
        (4, "needs the network"),
    ),
    "chain of operators": (
        "name: x\nnodes:\n  - {id: s, operator: impulse.source, config: {count: 1}}\n"
        "  - {id: a, operator: std.filter, inputs: [s], config: {predicate: '"
        + "+".join(["counter"] * 20_000)
        + " > 1'}}\n"
        + SINK,
        (4, "operators in a SQL expression"),
    ),
    "brackets": (
        "name: x\nnodes:\n  - {id: s, operator: impulse.source, config: {count: 1}}\n"
        "  - {id: a, operator: std.filter, inputs: [s], config: {predicate: '"
        + f"{'(' * 10_000}counter > 1{')' * 10_000}'}}}}\n"
        + SINK,
        (4, "nested too deep"),
    ),
}


@pytest.fixture(scope="module")
def server():
    """Its address, and the paths that were asked for."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_error(404)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{found.server_port}", asked
        found.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("foreign").resolve()
    (path / "data.csv").write_text("n\n1\n")
    (path / "x.proto").write_text('syntax = "proto3"; message M { int64 n = 1; }')
    (path / "x.whl").write_bytes(b"")
    secret = tmp_path_factory.mktemp("own") / "secret.csv"
    secret.write_text("hunter2\n1\n")
    (path / "link.csv").symlink_to(secret)
    return path


@pytest.fixture(scope="module")
def answers(folder, server):
    for name, (text, _) in CASES.items():
        written = text.replace("{root}", str(folder)).replace("{server}", server[0])
        (folder / f"{name}.yaml").write_text(written)
    files = {name: str(folder / f"{name}.yaml") for name in CASES}
    environment = {**os.environ, "SECRET": "hunter2", "ALLOWED": "data"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", ATTACK, str(folder), *files.values()],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    return {name: found[file] for name, file in files.items()}


@pytest.mark.parametrize("name", CASES)
def test_an_attack_is_one_mistake_at_its_place(name, answers):
    expected, found = CASES[name][1], answers[name]
    if expected is None:
        assert found == []
        return
    assert [mistake["line"] for mistake in found] == [expected[0]], found
    assert expected[1] in found[0]["message"]


def test_nothing_of_the_environment_or_of_files_outside_is_said(answers):
    assert "hunter2" not in json.dumps(answers)
    assert "root:x" not in json.dumps(answers)


def test_no_request_reaches_a_server(answers, server):
    assert server[1] == []


@pytest.mark.skipif(sys.platform != "linux", reason="the rules of the kernel are those of Linux")
def test_code_that_does_not_ask_is_stopped(folder, server):
    port = server[0].rpartition(":")[2]
    command = [sys.executable, "-P", "-c", ROGUE, str(folder), str((folder / "link.csv").resolve()), port]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {"done": [], "allowed": "n\n1\n"}


def _never_ends():
    while True:
        pass


def run(*arguments, cwd, **variables):
    command = [sys.executable, "-P", "-m", "arroyo_core", *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=600)


def test_the_command_runs_nothing_of_the_working_directory(folder):
    (folder / "yaml.py").write_text("raise SystemExit('the code of somebody else')")
    try:
        done = run("validate", "--untrusted", "allowed.yaml", "--allow-env", "ALLOWED", cwd=folder, ALLOWED="data")
    finally:
        (folder / "yaml.py").unlink()
    assert done.returncode == 0, done.stderr
    assert "valid (2 nodes" in done.stdout


def test_a_crash_of_the_process_is_a_mistake(folder):
    (folder / "bomb.yaml").write_text(
        "name: x\nnodes:\n  - {id: s, operator: impulse.source, config: {count: 1}}\n"
        "  - {id: a, operator: std.filter, inputs: [s], config: {predicate: \"repeat('a', 2000000000) = 'b'\"}}\n"
        + SINK
    )
    done = run("validate", "--format", "json", str(folder / "bomb.yaml"), cwd=folder, ARROYO_UNTRUSTED="1")
    (mistake,) = json.loads(done.stdout)
    assert done.returncode == 2
    assert "ARROYO_UNTRUSTED_MEMORY" in mistake["message"]
    assert "Traceback" not in done.stderr


def test_a_picture_is_written_where_the_user_says(folder, tmp_path):
    (folder / "plain.yaml").write_text(source("impulse.source", "{count: 1}"))
    done = run("graph", "--untrusted", "plain.yaml", "-o", str(tmp_path / "x.svg"), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "x.svg").read_text().startswith("<svg")


@pytest.mark.parametrize("command", [["run", "p.yaml"], ["test", "p.yaml"], ["doctor", "p.yaml"]])
def test_commands_that_do_more_refuse_untrusted_mode(command, monkeypatch, capsys):
    monkeypatch.setenv("ARROYO_UNTRUSTED", "1")
    assert main(command) == 2
    assert "validate, plan, graph and lint have an untrusted mode" in capsys.readouterr().err


@pytest.mark.parametrize("statements", ["select 1;", "", "create table t (x int) with (connector = 'impulse');"])
def test_the_prompt_of_sql_refuses_untrusted_mode(statements, monkeypatch, capsys):
    monkeypatch.setenv("ARROYO_UNTRUSTED", "1")
    monkeypatch.setattr("sys.stdin", io.StringIO(statements))
    assert main(["sql"]) == 2
    printed = capsys.readouterr()
    assert "validate, plan, graph and lint have an untrusted mode" in printed.err
    assert printed.out == ""


def test_a_pipeline_of_a_job_is_not_read_in_untrusted_mode(monkeypatch, tmp_path, capsys):
    # Its URL may name a variable, and a server that gets it.
    path = tmp_path / "theirs.yaml"
    path.write_text("name: x\ncheckpoint: {url: 'http://localhost:1/${HOME}'}\nnodes: [{id: a, operator: a.b}]\n")
    monkeypatch.setenv("ARROYO_UNTRUSTED", "1")
    for command in (["status"], ["ps"], ["stop"], ["rescale", "--parallelism", "2"], ["checkpoints", "ls"]):
        assert main([*command, str(path)]) == 2
        assert "validate, plan, graph and lint have an untrusted mode" in capsys.readouterr().err


#: What has untrusted mode.
CONFINED = {"validate", "plan", "graph", "lint", "inspect", "preview"}
#: What never plans or runs a pipeline. Any other command, and whatever is added, is refused.
HARMLESS = {
    *("arroyo plugins", "arroyo stop", "arroyo rescale", "arroyo ps", "arroyo status", "arroyo schema"),
    *("arroyo fmt", "arroyo docs", "arroyo completion", "arroyo proto"),
    *("arroyo ls", "arroyo logs", "arroyo report"),
    *(f"arroyo new {kind}" for kind in ("source", "sink", "database", "operator", "plugin", "udf", "pipeline")),
    *(f"arroyo udf {action}" for action in ("ls", "verify", "push", "keygen", "sign")),
    *(f"arroyo checkpoints {action}" for action in ("ls", "show", "verify", "repair", "seal", "fork", "rm")),
    *(f"arroyo state {action}" for action in ("tables", "cat", "diff")),
    *(f"arroyo dlq {action}" for action in ("ls", "show")),
    *("arroyo kafka broker",),
}


def parsers_below(parser):
    """Each parser that takes arguments of a command or an action, with the defaults of those above it."""
    below = subparsers_of(parser)
    is_command = "command" in parser._defaults
    yield from [(parser.prog, dict(parser._defaults))] if is_command or not below else []
    for actions in below:
        for each in actions.choices.values():
            for name, defaults in parsers_below(each):
                yield name, {**parser._defaults, **defaults}


def test_every_other_command_is_refused_unless_it_says_that_it_runs_no_pipeline(monkeypatch):
    monkeypatch.setenv("ARROYO_UNTRUSTED", "1")
    allowed, looked = set(), set()
    for name, defaults in parsers_below(_parser()):
        looked.add(name)
        arguments = {**defaults, "untrusted": False} if name.split()[1] in CONFINED else defaults
        try:
            confined = is_untrusted(argparse.Namespace(**arguments))
        except SetupError:
            continue
        assert confined == (name.split()[1] in CONFINED), name
        allowed.update([] if confined else [name])
    assert allowed == HARMLESS & looked
    assert {"arroyo sql", "arroyo run", "arroyo dlq replay", "arroyo udf test", "arroyo kafka lag"} <= looked - allowed


def test_a_command_of_a_plugin_is_refused_by_default(monkeypatch):
    monkeypatch.setenv("ARROYO_UNTRUSTED", "1")
    commands = Commands(RootParser(prog="arroyo"))
    commands.add_parser("forgot", help="says nothing")
    looks = commands.add_parser("looks", help="runs none", runs_pipelines=False)
    add_planning(looks.add_subparsers().add_parser("plans"))
    with pytest.raises(SetupError, match="have an untrusted mode"):
        is_untrusted(commands.root.parse_args(["forgot"]))
    with pytest.raises(SetupError, match="have an untrusted mode"):
        is_untrusted(commands.root.parse_args(["looks", "plans"]))
    assert not is_untrusted(commands.root.parse_args(["looks"]))


@pytest.mark.parametrize("value", ["", "0", "off"])
def test_the_variable_can_be_off(value, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("ARROYO_UNTRUSTED", value)
    assert main(["validate", str(tmp_path / "none.yaml")]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_checkpoints_are_not_compared_in_untrusted_mode(tmp_path, capsys):
    assert main(["plan", "--untrusted", str(tmp_path / "p.yaml"), "--against", "s3://bucket/state"]) == 2
    assert "--against reads checkpoints" in capsys.readouterr().err


def test_planning_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setenv("ARROYO_UNTRUSTED_SECONDS", "1")
    policy = PlanningPolicy(is_untrusted=True, roots=(tmp_path,))
    with in_force(policy), pytest.raises(InvalidPipelineError, match="took too long"), planning_time("p.yaml"):
        _never_ends()
