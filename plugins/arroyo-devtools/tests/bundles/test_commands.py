"""`arroyo udf`."""

import hashlib
import json
import re
from pathlib import Path

import pytest
import yaml

from arroyo_core.cli.main import main
from tests.unit.udf_bundles.conftest import GREETING


@pytest.fixture
def run(capsys):
    def call(*arguments):
        code = main(["udf", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "greeting.py"
    path.write_text(GREETING)
    return path


def test_build_push_and_list(run, source, tmp_path):
    code, out, _ = run("build", source, "-o", tmp_path / "dist")
    assert code == 0
    built = Path(out.splitlines()[0])
    digest = hashlib.sha256(built.read_bytes()).hexdigest()
    assert out.splitlines()[1:] == [f"  sha256 {digest}", "  greet(name: string) -> string"]

    code, out, _ = run("push", built, tmp_path / "store")
    assert code == 0
    assert yaml.safe_load(out) == {"udfs": [{"url": f"{tmp_path}/store/greeting-1.0.zip", "sha256": digest}]}

    code, out, _ = run("ls", tmp_path / "store")
    assert out.splitlines() == ["greeting-1.0.zip", f"  sha256 {digest}", "  greet(name: string) -> string"]


def test_what_is_pushed_is_never_overwritten(run, source, tmp_path):
    run("build", source, "-o", tmp_path)
    bundle = tmp_path / "greeting-1.0.zip"
    assert run("push", bundle, tmp_path / "store")[0] == 0
    # The same content again is not a change.
    assert run("push", bundle, tmp_path / "store")[0] == 0
    source.write_text(GREETING.replace("hello", "bye"))
    run("build", source, "-o", tmp_path)
    code, _, err = run("push", bundle, tmp_path / "store")
    assert code == 2
    assert "is there already, with another content" in err
    assert b"hello" in (tmp_path / "store/greeting-1.0.zip").read_bytes()


def test_a_signature_is_pushed_too(run, source, tmp_path):
    run("build", source, "-o", tmp_path)
    run("keygen", tmp_path / "key")
    run("sign", tmp_path / "greeting-1.0.zip", "--key", tmp_path / "key")
    run("push", tmp_path / "greeting-1.0.zip", tmp_path / "store")
    assert (tmp_path / "store/greeting-1.0.zip.sig").exists()
    assert "greeting-1.0.zip  (signed)" in run("ls", tmp_path / "store")[1]


def test_what_is_no_bundle_is_not_pushed(run, tmp_path):
    (tmp_path / "x.zip").write_bytes(b"PK no")
    code, _, err = run("push", tmp_path / "x.zip", tmp_path / "store")
    assert code == 2
    assert "not a readable zip archive" in err
    assert not (tmp_path / "store").exists()


def test_ls_shows_what_is_no_bundle(run, tmp_path):
    assert run("ls", tmp_path / "none") == (0, f"no bundles below {tmp_path}/none\n", "")
    (tmp_path / "x.whl").write_bytes(b"PK no")
    code, out, _ = run("ls", tmp_path)
    assert code == 0
    assert re.search(r"x\.whl\n  sha256 \w{64}\n  no bundle: x\.whl is not a readable zip archive", out)


def test_tools_read_the_list(run, source, tmp_path):
    run("build", source, "-o", tmp_path / "store")
    (tmp_path / "store" / "x.whl").write_bytes(b"PK no")
    code, out, _ = run("ls", tmp_path / "store", "--format", "json")
    assert code == 0
    greeting, broken = json.loads(out)
    assert (greeting["name"], greeting["is_signed"], greeting["error"]) == ("greeting-1.0.zip", False, None)
    assert greeting["functions"] == ["greet(name: string) -> string"]
    assert "is not a readable zip archive" in broken["error"]
    assert json.loads(run("ls", tmp_path / "none", "--format", "json")[1]) == []


def test_the_examples_of_a_bundle_are_its_test(run, source, tmp_path):
    run("build", source, "-o", tmp_path)
    code, out, _ = run("test", tmp_path / "greeting-1.0.zip")
    assert code == 0
    assert "1 function, 1 example, all as they say" in out


def test_an_example_that_is_wrong_fails(run, source, tmp_path):
    source.write_text(
        GREETING.replace("'hello you'", "'bye you'") + '\n\ndef helper():\n    """\n    >>> 1\n    2\n    """\n'
    )
    run("build", source, "-o", tmp_path)
    code, out, _ = run("test", tmp_path / "greeting-1.0.zip")
    assert code == 2
    assert "Expected:\n    'bye you'\nGot:\n    'hello you'" in out
    assert "2 examples, 2 failed" in out


def test_every_action_of_the_documents_is_one():
    text = (Path(__file__).parents[4] / "docs" / "udfs.md").read_text(encoding="utf-8")
    actions = set(re.findall(r"^arroyo udf ([a-z]+)", text, re.MULTILINE))
    assert actions == {"build", "test", "push", "ls", "keygen", "sign", "verify"}
    for action in actions:
        with pytest.raises(SystemExit) as ended:
            main(["udf", action, "--help"])
        assert ended.value.code == 0


def test_a_file_that_is_not_there_is_a_clear_error(run, tmp_path):
    for action in (["test"], ["push"], ["build"]):
        extra = [tmp_path] if action == ["push"] else []
        code, _, err = run(*action, tmp_path / "none", *extra)
        assert code == 2
        assert "none" in err
