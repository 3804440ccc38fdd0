"""Config fields that are marked as secret: an operator that tells them to everybody, and no command that shows them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from arroyo_core.cli.main import main
from arroyo_core.plugin import installed_plugins

from ...installed import installed

PASSWORD = "hunter2-rosebud"
KEY = "AbCdEfGh0123456789/x+y"
#: Parts that would give a secret away.
SECRETS = ["hunter2", "rosebud", "AbCdEfGh0123456789", "swordfish", "barracuda99"]

PLUGIN = '''
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory, struct_pb2, text_format

from arroyo_core.api import *
from arroyo_core.api.dead_letters import make_dead_letters
from arroyo_core.errors import ConfigError
from arroyo_core.plugin import hookimpl
from arroyo_core.proto import options_pb2
from arroyo_core.state import global_table_config

FILE = """
name: "leaky/leaky.proto" package: "leaky" syntax: "proto3" dependency: "arroyo_core/proto/options.proto"
dependency: "google/protobuf/struct.proto"
message_type { name: "Login"
  field { name: "user" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "user" }
  field { name: "password" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "password"
    options { [arroyo_core.secret]: true } } }
message_type { name: "Config"
  field { name: "login" number: 1 type: TYPE_MESSAGE type_name: ".leaky.Login" label: LABEL_OPTIONAL
    json_name: "login" }
  field { name: "options" number: 2 type: TYPE_MESSAGE type_name: ".leaky.Config.OptionsEntry" label: LABEL_REPEATED
    json_name: "options" options { [arroyo_core.secret]: true } }
  field { name: "fail" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "fail" }
  field { name: "pin" number: 4 type: TYPE_INT32 label: LABEL_OPTIONAL json_name: "pin"
    options { [arroyo_core.secret]: true } }
  field { name: "format" number: 5 type: TYPE_MESSAGE type_name: ".google.protobuf.Value" label: LABEL_OPTIONAL
    json_name: "format" }
  nested_type { name: "OptionsEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "key" }
    field { name: "value" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "value" } } }
"""
pool = descriptor_pool.Default()
pool.AddSerializedFile(text_format.Parse(FILE, descriptor_pb2.FileDescriptorProto()).SerializeToString())
Config = message_factory.GetMessageClass(pool.FindMessageTypeByName("leaky.Config"))
Config.__module__ = __name__


class Leaky(ArrowOperator):
    """Says everything it knows, wherever it is asked."""

    def __init__(self, config):
        form = json_format.MessageToDict(config.format)
        self.told = f"{config.login.user} {config.login.password} {dict(config.options)} {form}"
        self.fail = config.fail

    def name(self):
        return "leaky.sink"

    def display(self):
        return DisplayableOperator(self.name(), [("all", self.told)])

    def is_sink(self):
        return True

    def is_committing(self):
        return True

    def output_schema(self, inputs):
        if self.fail == "schema":
            raise ConfigError(self.told, field="login.password", value=self.told, allowed=[self.told])
        if self.fail == "fault":
            raise RuntimeError(self.told)
        return inputs[0]

    def state_settings(self, inputs):
        return {"all": self.told}

    def guarantee_reason(self):
        return self.told

    def unbounded_state(self, inputs):
        return UnboundedState(self.told, self.told)

    def tables(self, inputs):
        return global_table_config("staged", "nothing", uses_two_phase_commit=True)

    def process_batch(self, batch, ctx, collector):
        ctx.warn(self.told, topic=self.told)
        letters = make_dead_letters(
            batch, [ValueError(self.told)] * batch.num_rows, ctx, plugin=Origin("leaky", "1.0")
        )
        print(f"letter: {letters.column('_error')[0]}")
        if self.fail == "task":
            raise ValueError(self.told)
        if self.fail == "cause":
            try:
                raise ValueError(self.told)
            except ValueError as error:
                raise RuntimeError("failed") from error

    def handle_checkpoint(self, barrier, ctx, collector):
        ctx.table_manager.insert_committing_data("staged", b"")

    def handle_commit(self, epoch, commit_data, ctx):
        ctx.warn(self.told)
        if self.fail == "commit":
            raise ValueError(self.told)


class Constructor(OperatorConstructor):
    """Sends rows nowhere, and tells its config."""

    config_type = Config
    inputs = (1, 1)
    is_sink = True

    def with_config(self, config, registry):
        if config.fail == "config":
            raise RuntimeError(str(config))
        return ConstructedOperator.from_operator(Leaky(config))


@hookimpl
def arroyo_register(registry):
    registry.add("leaky.sink", Constructor())
'''

PIPELINE = """\
name: vault
checkpoint: {{url: ./state, rows: 5}}
nodes:
  - {{id: rows, operator: impulse.source, config: {{count: 10}}}}
  - id: out
    operator: leaky.sink
    inputs: [rows]
    config: {{login: {{user: ana, password: {password}}}, {more},
      options: {{region: north, key: {key}, api_token: swordfish, anon: "true"}},
      format: {{name: json, registry: {{password: barracuda99}}, schema: {{password: string}}}}}}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    (folder / "leaky.py").write_text(PLUGIN)
    info = folder / "leaky-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: leaky\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[arroyo_core]\nleaky = leaky\n")
    with installed(folder):
        # What this process has discovered before, and after.
        installed_plugins.cache_clear()
        yield folder
    installed_plugins.cache_clear()
    sys.modules.pop("leaky", None)


@pytest.fixture
def arroyo(site, tmp_path, monkeypatch, capfd, own_logging):
    """Runs a command; whatever it prints has no part of a secret."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VAULT_PASSWORD", PASSWORD)
    monkeypatch.setenv("VAULT_KEY", KEY)

    def run(*arguments, code=0):
        found = main(list(arguments))
        answer = capfd.readouterr()
        printed = answer.out + answer.err
        assert found == code, printed
        assert not [secret for secret in SECRETS if secret in printed], printed
        return printed

    return run


@pytest.fixture
def pipeline(tmp_path):
    def write(*, password=PASSWORD, key=KEY, more="fail: ''"):
        path = tmp_path / "vault.yaml"
        path.write_text(PIPELINE.format(password=password, key=key, more=more))
        return str(path)

    return write


@pytest.mark.parametrize("written", [{}, {"password": '"${VAULT_PASSWORD}"', "key": '"${VAULT_KEY}"'}])
def test_no_command_and_no_file_shows_a_secret(written, arroyo, pipeline, tmp_path):
    file = pipeline(**written)
    hidden = "${VAULT_PASSWORD}" if written else "***"
    shown = arroyo("plan", file)
    assert f"ana {hidden} {{" in shown
    # Settings that texts have anyway stay.
    assert "'region': 'north'" in shown
    assert "'anon': 'true'" in shown
    # So does the type of a column, whatever the column is called.
    assert "'schema': {'password': 'string'}" in shown
    for form in ("json", "mermaid", "dot"):
        arroyo("plan", "--format", form, file)
    arroyo("graph", file)
    arroyo("graph", file, "-o", "vault.svg")
    arroyo("lint", file, code=1)
    arroyo("lint", "--format", "json", file, code=1)
    told = arroyo("run", "--in-process", "--format", "json", file)
    assert "warnings" in told
    # The error of a dead letter.
    assert "letter: ana *** {" in told
    arroyo("plan", "--against", "./state", file)
    arroyo("checkpoints", "show", "./state")
    arroyo("state", "tables", "./state", "--format", "json")
    # Nor do the drawing and the checkpoints.
    files = [path for path in tmp_path.rglob("*") if path.is_file() and str(path) != file]
    assert len(files) > 3
    for path in files:
        assert not [secret for secret in SECRETS if secret.encode() in path.read_bytes()], path


@pytest.mark.parametrize("step", ["config", "schema", "fault"])
@pytest.mark.parametrize("options", [[], ["--format", "json"], ["--debug"]])
def test_mistakes_of_the_operator_show_no_secret(step, options, arroyo, pipeline):
    arroyo("validate", *options, pipeline(more=f"fail: {step}"), code=2)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"password": f"[{PASSWORD}]"}, "'password' must be a string, not a list"),
        ({"more": f"fail: [{PASSWORD}]"}, "'fail' must be a string"),
        ({"more": "pin: hunter2"}, "'pin' must be a whole number, not the string '***'"),
        ({"more": f"login_: {{password: {PASSWORD}}}"}, "has no field 'login_'"),
        ({"password": f"{PASSWORD}, pasword: {PASSWORD}"}, "has no field 'pasword'"),
        ({"key": f"{{deep: {KEY}}}"}, "must be a string"),
    ],
)
@pytest.mark.parametrize("options", [[], ["--format", "json"]])
def test_mistakes_in_a_config_do_not_repeat_its_lines(written, message, options, arroyo, pipeline):
    printed = arroyo("validate", *options, pipeline(**written), code=2)
    assert message in printed.replace("\\u2026", "")


def test_a_line_without_a_secret_is_shown_as_ever(arroyo, pipeline):
    file = pipeline()
    path = Path(file)
    path.write_text(path.read_text().replace("count: 10", "count: ten"))
    assert "config: {count: ten}" in arroyo("validate", file, code=2)


@pytest.mark.parametrize("step", ["task", "cause", "commit"])
def test_failures_of_a_run_show_no_secret(step, arroyo, pipeline):
    printed = arroyo("run", "--in-process", "--debug", "--max-restarts", "0", pipeline(more=f"fail: {step}"), code=2)
    assert "ValueError: ana *** {" in printed


def test_lint_wants_secrets_from_the_environment(arroyo, pipeline):
    found = json.loads(arroyo("lint", "--format", "json", pipeline(), code=1))
    messages = [each["message"] for each in found if each.get("code") == "secret-in-clear"]
    assert messages == [
        "a secret of the operator is written in clear",
        "'api_token' is written in clear",
        "'password' is written in clear",
    ]
    in_default = pipeline(password=f'"${{VAULT_PASSWORD:-{PASSWORD}}}"')
    assert "a secret of the operator is written in clear" in arroyo("lint", in_default, code=1)
    from_environment = arroyo("lint", pipeline(password='"${VAULT_PASSWORD}"'), code=1)
    assert "a secret of the operator" not in from_environment


def test_editors_and_the_reference_know_secret_fields(arroyo):
    schema = arroyo("schema")
    assert schema.count('"writeOnly": true') >= 3
    assert "mapping of string to string, secret" in arroyo("docs", "leaky.sink")
