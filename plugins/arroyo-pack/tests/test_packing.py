"""Archives that were made before, what pipelines need, and the options of the two commands."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import time

import pytest
from arroyo_pack import cache
from arroyo_pack.needs import needed_by, needed_by_all
from arroyo_pack.packages import PackError, closure
from arroyo_pack.packing import Kind, pack
from arroyo_pack.probing import ExecutorFacts, mismatch
from arroyo_pack.shipping import shipper_for

from arroyo_core.cli.main import main
from arroyo_core.pipeline import plan_file
from arroyo_core.plugin import installed_plugins
from arroyo_core.spark.provisions import ENVIRONMENT_PYTHON

PIPELINE = """\
name: p
checkpoint: {url: "URL"}
nodes:
  - {id: numbers, operator: impulse.source, config: {count: 10}}
  - {id: out, operator: std.blackhole, inputs: [numbers]}
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    folder = tmp_path / "packs"
    monkeypatch.setenv("ARROYO_PACK_CACHE", str(folder))
    monkeypatch.setattr(cache, "_held", {})
    return folder


def write(content):
    def make(path):
        path.write_bytes(content)

    return make


def must_not_be_called(path):
    raise AssertionError(path)


def test_an_archive_is_made_once(own_cache):
    assert cache.cached("a.zip", write(b"one")) == (own_cache / "a.zip", False)
    assert cache.cached("a.zip", must_not_be_called) == (own_cache / "a.zip", True)
    assert (own_cache / "a.zip").read_bytes() == b"one"
    assert (own_cache / "a.zip").stat().st_mode & 0o077 == 0


def test_what_could_not_be_made_leaves_nothing(own_cache):
    def make(path):
        path.write_bytes(b"half")
        raise PackError("no")

    with pytest.raises(PackError):
        cache.cached("a.zip", make)
    assert list(own_cache.iterdir()) == []


def test_what_nobody_used_for_a_month_is_removed_unless_a_driver_holds_it(own_cache):
    long_ago = time.time() - cache.UNUSED_S - 60
    cache.cached("held.zip", write(b"1"))
    for name in ("held.zip", "old.zip", "new.zip"):
        (own_cache / name).write_bytes(b"1")
    for name in ("held.zip", "old.zip"):
        os.utime(own_cache / name, (long_ago, long_ago))
    cache.cached("another.zip", write(b"2"))
    assert {path.name for path in own_cache.iterdir()} == {"held.zip", "new.zip", "another.zip"}


def test_a_driver_keeps_others_from_removing_what_it_sends(own_cache):
    path, _ = cache.cached("a.zip", write(b"1"))
    with path.open("rb") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_without_a_cache_archives_go_with_the_process(monkeypatch):
    monkeypatch.setenv("ARROYO_PACK_CACHE", "off")
    path, was_there = cache.cached("a.zip", write(b"1"))
    assert (path.read_bytes(), was_there) == (b"1", False)


def planned(tmp_path, *, url="./state"):
    path = tmp_path / "p.yaml"
    path.write_text(PIPELINE.replace("URL", url))
    return plan_file(str(path), plugins=installed_plugins(), environment={}).plan


def test_a_pipeline_needs_the_plugins_of_its_nodes_and_formats_and_no_others(tmp_path):
    names = needed_by([planned(tmp_path)], installed_plugins())
    assert {"arroyo-core", "arroyo-nexmark", "arroyo-std"} <= set(names)
    assert {"arroyo-jobs", "arroyo-pack", "arroyo-testing"}.isdisjoint(names)
    assert {"arroyo-jobs", "arroyo-pack", "arroyo-testing"}.isdisjoint(needed_by_all(installed_plugins()))
    assert "s3fs" not in names


def test_a_url_needs_what_opens_it(tmp_path):
    names = needed_by([planned(tmp_path, url="s3://acme/state")], installed_plugins())
    assert "s3fs" in names


def test_wheels_are_what_is_pure_and_the_same_content_has_the_same_name():
    told = []
    made = pack(Kind.WHEELS, ["packaging", "pyarrow"], tell=told.append)
    assert [package.name for package in made.packed] == ["packaging"]
    assert [package.name for package in made.left_out] == ["pyarrow"]
    assert told == ["packing 1 packages"]
    again = pack(Kind.WHEELS, ["packaging", "pyarrow"], tell=told.append)
    assert (again.path, again.was_there) == (made.path, True)
    assert len(told) == 1


def arguments(**given):
    options = {"ship": "none", "ship_with": [], "ship_python": None, "ship_file": None}
    return argparse.Namespace(**{**options, **given})


def test_nothing_is_sent_where_nobody_asks():
    assert shipper_for(arguments(), []) is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ship_with": ["a"]}, "go with --ship wheels or --ship env"),
        ({"ship": "wheels", "ship_python": "/p"}, "--ship-python goes with --ship env; for --ship wheels name"),
        ({"ship": "env", "ship_file": "e.tar.gz", "ship_with": ["a"]}, "--ship-file is sent as it is"),
        ({"ship": "env", "ship_file": "nosuch.tar.gz"}, "--ship-file nosuch.tar.gz: there is no such file"),
    ],
)
def test_options_that_do_not_go_together_are_refused(given, said):
    with pytest.raises(PackError, match=said):
        shipper_for(arguments(**given), []).prepare(lambda _: None)


def test_a_file_of_another_kind_is_refused_by_its_name(tmp_path):
    path = tmp_path / "packed.tar.gz"
    path.write_bytes(b"")
    with pytest.raises(PackError, match=r"for --ship wheels it ends in \.zip"):
        shipper_for(arguments(ship="wheels", ship_file=str(path)), []).prepare(lambda _: None)
    made = shipper_for(arguments(ship="env", ship_file=str(path)), []).prepare(lambda _: None)
    assert made.environment == path


@pytest.mark.parametrize(
    ("there", "told"),
    [(None, "pyarrow>=19,<27"), ("18.0", "pyarrow>=19,<27 (it has 18.0)"), ("20.0", "")],
)
def test_what_executors_must_have_is_held_against_what_is_required(there, told):
    (package,) = (each for each in closure(["arroyo-core"]) if each.name == "pyarrow")
    executor = ExecutorFacts(host="h", python="3.11.2", executable="/p", packages={"pyarrow": there})
    assert sorted(mismatch(package, executor).replace("<27,>=19", ">=19,<27").split()) == sorted(told.split())


def test_the_command_tells_what_to_give_to_spark(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("arroyo_pack.commands.pack.needed_by_all", lambda _: ["packaging", "msgspec"])
    # pandas and all of its own would take seconds to pack.
    monkeypatch.setattr("arroyo_pack.packing.find_spec", lambda _: None)
    output = tmp_path / "environment.tar.gz"
    assert main(["pack", "--as", "env", "--python", "/usr/bin/python3", "-o", str(output), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["settings"] == {
        "spark.archives": f"{output}#arroyo_environment",
        "spark.pyspark.python": ENVIRONMENT_PYTHON,
    }
    assert set(told["packed"]) == {"packaging", "msgspec"}
    assert output.stat().st_size == told["bytes"]


def test_a_name_by_which_spark_would_not_unpack_it_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("arroyo_pack.commands.pack.needed_by_all", lambda _: ["packaging"])
    assert main(["pack", "-o", str(tmp_path / "wheels.tar")]) == 2
    assert "the name of this archive ends in .zip" in capsys.readouterr().err
