"""`arroyo serve`, `arroyo --server`, `preview` and `inspect`, as a terminal uses them."""

from __future__ import annotations

import argparse
import json

import pytest
from arroyo_console.cli.serve import access_rules

from arroyo_core.cli.main import main
from arroyo_core.errors import SetupError

from .support.serving import ServerProcess, kill, wait_for
from .support.texts import BROKEN, bounded, paced

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("own_logging")]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = ServerProcess(tmp_path_factory.mktemp("served") / "data")
    yield server
    for job in server.get("/v1/jobs")["items"]:
        if job["pid"]:
            kill(job["pid"])
    server.close()


def test_a_pipeline_is_run_watched_rescaled_and_stopped_from_elsewhere(server, tmp_path, capsys):
    file = tmp_path / "far.yaml"
    file.write_text(paced("far"))
    assert main(["--server", server.url, "run", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "far: starting as pl_" in shown
    assert f"arroyo --server {server.url} logs far" in shown

    def log():
        assert main(["--server", server.url, "logs", "far"]) == 0
        return "epoch" in capsys.readouterr().out

    def listed():
        assert main(["--server", server.url, "ls"]) == 0
        (head, line) = capsys.readouterr().out.splitlines()
        assert head.split()[:2] == ["name", "state"]
        return line.split()[:2]

    wait_for(log)
    # The server learns of it a moment later.
    wait_for(lambda: listed() == ["far", "running"])
    assert main([f"--server={server.url}", "rescale", "far", "--parallelism", "2"]) == 0
    assert main(["--server", server.url, "ps", "--format", "json"]) == 0
    job = json.loads(capsys.readouterr().out.partition("\n")[2])[0]
    wait_for(lambda: server.get(f"/v1/jobs/{job['id']}")["summary"]["parallelism"] == 2)
    assert main(["--server", server.url, "stop", "far"]) == 0
    wait_for(lambda: server.get(f"/v1/jobs/{job['id']}")["summary"]["state"] == "stopped")
    # Another text of the same name is another version of it.
    file.write_text(paced("far", rate=100))
    assert main(["--server", server.url, "run", str(file), "--format", "json"]) == 0
    assert server.get(f"/v1/pipelines/{job['pipeline_id']}")["version"] == 2


def test_mistakes_that_the_server_finds_have_the_line_of_the_file(server, tmp_path, capsys):
    file = tmp_path / "broken.yaml"
    file.write_text(BROKEN)
    assert main(["--server", server.url, "run", str(file)]) == 2
    shown = capsys.readouterr().err
    assert f"{file}:4:15:" in shown
    assert "did you mean nexmark.source?" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["stop", "nothing"], "has no pipeline 'nothing'"),
        (["run", "a.yaml", "--master", "local[2]"], "the server decides about --master"),
        (["logs", "pl_00000000000000000000"], "there is no pipeline"),
    ],
)
def test_what_the_server_has_not_or_decides_is_said(server, arguments, said, capsys):
    assert main(["--server", server.url, *arguments]) == 2
    assert said in capsys.readouterr().err


def test_without_a_server_there_is_nothing_to_list(capsys):
    assert main(["ls"]) == 2
    assert "arroyo --server URL" in capsys.readouterr().err
    assert main(["--server", "http://127.0.0.1:9", "ls"]) == 2
    assert "does not answer" in capsys.readouterr().err
    assert main(["--server", "nonsense", "ls"]) == 2
    assert "is not a URL" in capsys.readouterr().err


def test_other_commands_refuse_a_server():
    with pytest.raises(SystemExit, match="--server goes with run, stop"):
        main(["--server", "http://127.0.0.1:9", "plugins"])


def test_a_preview_shows_rows_in_a_terminal_and_writes_nothing(tmp_path, capsys):
    file = tmp_path / "sample.yaml"
    file.write_text(bounded("sample", path=str(tmp_path / "out")))
    assert main(["preview", str(file), "--rows", "2", "--node", "bids"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "bids: 2 rows"
    assert lines[1].split()[:2] == ["auction", "bidder"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sample.yaml"]
    assert main(["preview", str(file), "--node", "bid"]) == 2
    assert "did you mean 'bids'?" in capsys.readouterr().err


def test_an_inspection_has_the_plan_or_the_mistakes_and_secrets(tmp_path, capsys):
    file = tmp_path / "p.yaml"
    file.write_text(bounded("sample", path="s3://me:hunter2-and-more@bucket/out"))
    assert main(["inspect", str(file)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [node["id"] for node in found["plan"]["nodes"]] == ["bids", "out"]
    assert [secret["line"] for secret in found["secrets"]] == [6]
    file.write_text(BROKEN)
    assert main(["inspect", str(file)]) == 2
    assert json.loads(capsys.readouterr().out)["problems"][0]["line"] == 4


def test_a_report_does_not_plan_a_file_where_pipelines_are_not_trusted(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("ARROYO_UNTRUSTED", "1")
    file = tmp_path / "theirs.yaml"
    file.write_text(BROKEN)
    assert main(["report", str(file)]) == 2
    assert "ARROYO_UNTRUSTED is set" in capsys.readouterr().err


def test_a_preview_of_a_stranger_reads_no_file_and_no_variable(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("WAREHOUSE", "hunter2-and-more")
    file = tmp_path / "inner" / "theirs.yaml"
    file.parent.mkdir()
    (tmp_path / "secret.csv").write_text("id\n7\n")
    source = f"{{path: {tmp_path}/secret.csv, format: csv, schema: {{id: int64}}}}"
    file.write_text(
        f"name: ${{WAREHOUSE}}\nnodes:\n  - {{id: a, operator: filesystem.source, config: {source}}}\n"
        "  - {id: out, operator: std.blackhole, inputs: [a]}\n"
    )
    assert main(["preview", str(file), "--untrusted", "--format", "json"]) == 2
    shown = capsys.readouterr().out
    assert "refuses to read the variable WAREHOUSE" in shown
    assert "hunter2" not in shown
    file.write_text(file.read_text().replace("${WAREHOUSE}", "theirs"))
    main(["preview", str(file), "--untrusted", "--format", "json"])
    shown = json.loads(capsys.readouterr().out)
    assert not any(node["rows"] for node in shown["nodes"])
    assert "in untrusted mode sources read no files" in shown["error"]
    assert main(["preview", str(file), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["nodes"][0]["rows"] == [{"id": 7}]


# Access


def _args(**changed):
    known = {"host": "127.0.0.1", "token_file": None, "read_token_file": None, "allow_host": []}
    return argparse.Namespace(**{**known, "trust_proxy_header": None, "proxy": [], "writer": [], **changed})


@pytest.fixture
def no_tokens(monkeypatch):
    monkeypatch.delenv("ARROYO_CONSOLE_TOKEN", raising=False)
    monkeypatch.delenv("ARROYO_CONSOLE_READ_TOKEN", raising=False)


@pytest.mark.usefixtures("no_tokens")
def test_another_address_than_loopback_needs_a_token_which_is_made(tmp_path, capsys):
    assert not access_rules(_args(), tmp_path).needs_login
    rules = access_rules(_args(host="0.0.0.0"), tmp_path)
    assert rules.needs_login
    assert rules.tokens.role_of((tmp_path / "token").read_text().strip()) == "write"
    assert str(tmp_path / "token") in capsys.readouterr().err
    assert access_rules(_args(host="0.0.0.0", trust_proxy_header="X-User", writer=["ann"]), tmp_path).needs_login


@pytest.mark.usefixtures("no_tokens")
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"token_file": "/nowhere/token"}, "is not there"),
        ({"read_token_file": "/nowhere/token"}, "is not there"),
        ({"writer": ["ann"]}, "--writer goes with --trust-proxy-header"),
    ],
)
def test_options_that_cannot_be_met_are_refused(changed, said, tmp_path):
    with pytest.raises(SetupError, match=said):
        access_rules(_args(**changed), tmp_path)
