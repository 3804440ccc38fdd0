"""`~` in the URLs of a pipeline is the home folder of who runs it, never a folder of that name."""

from __future__ import annotations

from arroyo_devtools.bundles.building import build_bundle
from arroyo_testing.in_process import run_in_process

from arroyo_core.cli.main import main
from arroyo_core.pipeline import plan_pipeline
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.start import StartOptions
from arroyo_core.runtime.user_code import BundleOpener
from arroyo_core.spark.pipeline import Pipeline
from arroyo_core.state.fork import ForkSource

PIPELINE = """
name: NAME
checkpoint: {url: CHECKPOINT}
udfs: [{url: ~/functions.zip, as: mine}]
nodes:
  - {id: rows, operator: filesystem.source, config: {path: ~/in/*.csv, schema: {id: int64}}}
  - {id: more, operator: std.project, inputs: [rows], config: {expressions: {id: "mine.twice(id)"}}}
  - {id: out, operator: filesystem.sink, inputs: [more], config: {path: file://~/NAME, format: csv}}
"""

FUNCTIONS = """
from arroyo_core.udf import udf


@udf
def twice(value: int) -> int:
    return 2 * value
"""


def test_every_url_of_a_pipeline_may_begin_with_the_home_folder(tmp_path, monkeypatch, capsys):
    home, work = tmp_path / "home", tmp_path / "work"
    (home / "in").mkdir(parents=True)
    work.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(work)
    (home / "in/a.csv").write_text("id\n1\n2\n")
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    (home / "functions.zip").write_bytes(build_bundle(tmp_path / "functions.py").data)
    for name, url in (("first", "~/state"), ("second", "file://~/state")):
        (work / f"{name}.yaml").write_text(PIPELINE.replace("NAME", name).replace("CHECKPOINT", url))
    assert run_in_process(work / "first.yaml").is_finished
    assert (home / "state/first/checkpoints").is_dir()
    written = "".join(path.read_text() for path in (home / "first").rglob("part-*.csv"))
    assert sorted(written.split()) == ['"id"', "2", "4"]

    plan = plan_pipeline(
        work / "second.yaml", plugins=installed_plugins(), environment={}, bundles=BundleOpener(allows_unpinned=True)
    )
    fork = StartOptions(fork_from=ForkSource.parse("~/state#first"))
    start = Pipeline(plan, installed_plugins()).check_start(fork)
    assert start is not None
    assert f"below {home}/state" in start.warnings[0]

    assert main(["checkpoints", "verify", "~/state#first"]) == 0
    assert "whole" in capsys.readouterr().out
    assert sorted(path.name for path in work.iterdir()) == ["first.yaml", "second.yaml"]
