"""What planning may do, as our own code asks."""

import os
import threading

import pytest

from arroyo_core.api.limits import NODES, SCHEMA_BYTES, VALUE_DEPTH
from arroyo_core.api.policy import PlanningPolicy, current_policy, in_force, local_path, read_limited
from arroyo_core.errors import ConfigError, RefusedError, SetupError


@pytest.fixture
def untrusted(tmp_path):
    return PlanningPolicy(is_untrusted=True, roots=(tmp_path.resolve(),), variables=frozenset({"STAGE"}))


def test_authors_are_trusted_where_nobody_says_otherwise():
    policy = current_policy()
    policy.check_network("x")
    policy.check_code("x")
    policy.check_url("s3://bucket/file")
    assert policy.is_readable_variable("HOME")


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/x",
        "http://host/x",
        "zip://a.csv::file:///etc/passwd",
        "/etc/passwd",
        "file:///etc/passwd",
        "local:///etc/passwd",
        "{root}/../x",
        "{root}/link",
        "~/x",
    ],
)
def test_only_local_files_below_a_root_are_read(url, untrusted, tmp_path):
    (tmp_path / "link").symlink_to("/etc/passwd")
    with pytest.raises(RefusedError, match="untrusted mode refuses"):
        untrusted.check_url(url.format(root=tmp_path), field="path")
    untrusted.check_url(f"{tmp_path}/data/x.csv")
    untrusted.check_url(f"file://{tmp_path}/data/x.csv")


def test_a_folder_whose_name_begins_alike_is_not_below(untrusted, tmp_path):
    with pytest.raises(RefusedError):
        untrusted.check_path(f"{tmp_path}-other/x")


def test_code_and_network_are_refused_with_what_to_do(untrusted):
    with pytest.raises(RefusedError, match="leave --untrusted away"):
        untrusted.check_code("the bundle x.whl")
    with pytest.raises(RefusedError, match="needs the network: declare it"):
        untrusted.check_network("to ask", instead="declare it")


def test_a_policy_holds_inside_only(untrusted):
    with in_force(untrusted):
        assert current_policy() is untrusted
    assert not current_policy().is_untrusted


def test_variables_are_those_that_are_allowed(untrusted):
    assert untrusted.is_readable_variable("STAGE")
    assert not untrusted.is_readable_variable("HOME")


@pytest.mark.parametrize("kind", ["device", "pipe", "folder"])
def test_only_regular_files_are_read(kind, tmp_path):
    path = {"device": "/dev/zero", "pipe": tmp_path / "pipe", "folder": tmp_path}[kind]
    if kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(OSError, match=r"not a regular file|directory"):
        read_limited(path, SCHEMA_BYTES)


def test_a_file_that_the_user_names_may_be_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"name: x",))
    writer.start()
    assert read_limited(tmp_path / "pipe", SCHEMA_BYTES, is_regular=False) == b"name: x"
    writer.join()


def test_no_more_than_the_limit_is_read(monkeypatch, tmp_path):
    monkeypatch.setenv(SCHEMA_BYTES.variable, "10")
    (tmp_path / "ten").write_bytes(b"x" * 10)
    (tmp_path / "eleven").write_bytes(b"x" * 11)
    assert len(read_limited(tmp_path / "ten", SCHEMA_BYTES)) == 10
    with pytest.raises(OSError, match=SCHEMA_BYTES.variable):
        read_limited(tmp_path / "eleven", SCHEMA_BYTES)
    with pytest.raises(OSError, match="too large"):
        read_limited("/dev/zero", SCHEMA_BYTES, is_regular=False)


def test_local_paths_are_told_from_other_urls(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert local_path("x.csv") == str(tmp_path / "x.csv")
    assert local_path("file:///a/b") == "/a/b"
    assert local_path("memory://a") is None
    assert local_path("zip://a::b.zip") is None


def test_a_limit_is_a_number(monkeypatch):
    monkeypatch.setenv(NODES.variable, "5")
    with pytest.raises(ConfigError, match=r"6 are too many: at most 5 nodes.*ARROYO_MAX_NODES"):
        NODES.check(6, field="x")
    monkeypatch.setenv(NODES.variable, "many")
    with pytest.raises(SetupError, match="ARROYO_MAX_NODES is a whole number"):
        _ = NODES.value


def test_a_limit_of_bytes_may_have_a_unit(monkeypatch):
    monkeypatch.setenv(SCHEMA_BYTES.variable, "3MiB")
    assert SCHEMA_BYTES.value == 3 * 2**20
    monkeypatch.setenv(SCHEMA_BYTES.variable, "3 pages")
    with pytest.raises(SetupError, match=r"ARROYO_MAX_SCHEMA_BYTES: .*unknown unit"):
        _ = SCHEMA_BYTES.value


def test_a_limit_stays_where_parsers_are_safe(monkeypatch):
    monkeypatch.setenv(VALUE_DEPTH.variable, "100000")
    with pytest.raises(SetupError, match="ARROYO_MAX_VALUE_DEPTH is from 1 to 500"):
        _ = VALUE_DEPTH.value
