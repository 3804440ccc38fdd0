"""The URL of Spark Connect has a token, which is a secret: it reaches the server, and nobody else."""

from __future__ import annotations

import socket

import pytest

from arroyo_core.cli.main import main
from arroyo_core.spark.session import UnreachableSparkError, create_session
from arroyo_core.spark.target import Target, resolve_target, shown_master

PIPELINE = """
name: told
nodes:
  - {id: rows, operator: impulse.source, config: {count: 1}}
  - {id: out, operator: std.blackhole, inputs: [rows]}
"""


#: What is written otherwise.
FORMS = {
    "usual": ("", ""),
    "capitals": ("sc://", "SC://"),
    "query": (";", "?"),
    "no slash": ("/;", ";"),
    "no slash, query": ("/;", "?"),
}


@pytest.fixture
def url():
    """Where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        # Bound, and not listening: connections are refused.
        yield f"sc://127.0.0.1:{taken.getsockname()[1]}/;use_ssl=false;token=hunter2;user_id=me"


def test_a_master_is_shown_without_parameters():
    assert shown_master("sc://host:15002/;use_ssl=true;token=hunter2") == "sc://host:15002"
    assert str(Target(master="sc://host/;token=hunter2", chosen_by="SPARK_REMOTE")) == "sc://host, from SPARK_REMOTE"
    assert shown_master("sc://host:15002/?token=hunter2") == "sc://host:15002"
    assert shown_master("SC://host:15002;token=hunter2") == "SC://host:15002"
    assert shown_master("spark://a:7077,b:7077") == "spark://a:7077,b:7077"
    assert shown_master("local[4]") == "local[4]"


def test_the_server_gets_all_of_the_url(url):
    assert resolve_target(url).spark_master == url


def test_the_scheme_may_be_in_capitals(url):
    """The client knows it in small letters only."""
    target = resolve_target(url.replace("sc://", "SC://"))
    assert (target.is_connect, target.master) == (True, url)


@pytest.mark.parametrize("options", [[], ["--debug"]])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_no_log_and_no_error_has_the_token(url, options, form, tmp_path, capsys):
    path = tmp_path / "told.yaml"
    path.write_text(PIPELINE)
    assert main([*options, "run", "--master", url.replace(*form, 1), str(path)]) != 0
    printed = capsys.readouterr()
    assert "sc://127.0.0.1" in printed.err
    assert "hunter2" not in printed.out + printed.err


@pytest.mark.parametrize(
    "message",
    [
        "cannot use {url}: no such host",
        "no such host\n(asked for {url})",
        # As pyspark has it where a URL has no host.
        "no such host in the URL: 'http:///;use_ssl=false;token=hunter2;user_id=me'",
        "no such host\nmetadata was invalid: [('authorization', 'Bearer hunter2')]",
    ],
)
def test_a_server_that_is_lost_while_a_session_begins_is_named_without_the_token(url, message, monkeypatch):
    """The client has the URL, or a part of it, in some of its errors."""
    caught = lost(monkeypatch, url, ValueError(message.format(url=url)))
    assert "no such host" in str(caught)
    assert "hunter2" not in str(caught)
    assert caught.__cause__ is None


def test_the_cause_of_a_cause_has_the_token(url, monkeypatch):
    error = ValueError("no such host")
    error.__cause__ = OSError(f"cannot reach {url}")
    assert lost(monkeypatch, url, error).__cause__ is None


def test_a_cause_without_the_token_is_kept(url, monkeypatch):
    error = ValueError("the server is use_ssl=false\nand has no host")
    caught = lost(monkeypatch, url, error)
    assert caught.__cause__ is error
    assert str(caught).endswith("cannot be reached: the server is use_ssl=false")


def lost(monkeypatch, url, error):
    """What a session is refused with, when the client says this."""
    from pyspark.sql import SparkSession

    def refuse(self):
        raise error

    monkeypatch.setattr("arroyo_core.spark.session._check_reachable", lambda url: None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", refuse)
    with pytest.raises(UnreachableSparkError) as caught:
        create_session("told", master=url)
    return caught.value
