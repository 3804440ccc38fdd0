"""User functions that changed since the last checkpoint."""

import hashlib
import json
import re

import pytest
from arroyo_testing.lanes import InlineLanes

from arroyo_core.api import Origin
from arroyo_core.cli import options
from arroyo_core.cli import plan as plan_command
from arroyo_core.cli.main import main
from arroyo_core.pipeline import UdfKind, UdfPin, plan_pipeline
from arroyo_core.pipeline.plan import Plan
from arroyo_core.proto.state_pb2 import CheckpointMetadata, DistributionDigest
from arroyo_core.runtime.job import Job
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.start import StartError, StartOptions, check_start
from arroyo_core.runtime.stop import StopSignal
from arroyo_core.runtime.udf_changes import (
    ACCEPTED,
    MAX_ACCEPTED,
    UdfChange,
    UdfVerdict,
    compare_udfs,
    record_accepted,
)
from arroyo_core.runtime.user_code import BundleOpener
from arroyo_core.state import ParquetBackend, get_storage_provider
from arroyo_core.state.failures import IncompatibleCheckpointError
from arroyo_core.udf import udf

from .conftest import GREETING

ROWS = 60
ACCEPT = StartOptions(accept_udf_changes=frozenset({"greeting"}))


class StopAfter:
    """Stops a job after some epochs."""

    def __init__(self, stop, epochs):
        self._stop = stop
        self._epochs = epochs

    def on_start(self, job):
        return

    def on_epoch(self, result, job):
        self._epochs -= 1
        if not self._epochs:
            self._stop.request()


@pytest.fixture
def life(pipeline, plugins, tmp_path, seen):
    """Run the pipeline with a bundle for some epochs of three rows; gives its last checkpoint."""
    url = str(tmp_path / "state")

    def run(bundle, *, epochs=None, start=None, rows=ROWS):
        path = pipeline([f"{{url: {bundle}}}"], "greet", rows=rows, checkpoint=f"{{url: {url}, keep: 100}}")
        plan = plan_pipeline(path, plugins=plugins, environment={}, bundles=BundleOpener())
        backend = ParquetBackend(get_storage_provider(url), "p")
        check_start(backend, plan, plugins, start or StartOptions())
        stop = StopSignal()
        listener = StopAfter(stop, epochs) if epochs else None
        Job(
            plan,
            LocalExecutor(plugins),
            plugins=plugins,
            storage_url=url,
            start=start,
            stop=stop,
            listener=listener,
            # One thing after the other, so that no epoch runs ahead of the stop.
            lanes=InlineLanes(),
        ).run()
        epoch = max(backend.read_facts().published)
        return backend.load_checkpoint_metadata("p", epoch)

    return run


@pytest.fixture
def bundles(make_bundle):
    """Two versions of one bundle, at one place as people overwrite files."""
    old = make_bundle().read_bytes()
    path = make_bundle(GREETING.replace("hello {name}", "bye {name}").replace('"1.0"', '"1.1"'))
    return old, path.read_bytes()


def test_every_checkpoint_records_the_digest(life, make_bundle):
    checkpoint = life(make_bundle())
    (recorded,) = checkpoint.udfs
    assert (recorded.name, recorded.version) == ("greeting", "1.0")
    assert recorded.sha256 == hashlib.sha256(make_bundle().read_bytes()).digest()
    assert ACCEPTED not in checkpoint.properties


def test_a_changed_bundle_is_refused_then_accepted_and_recorded(life, bundles, tmp_path, seen):
    path = tmp_path / "greeting.zip"
    path.write_bytes(bundles[0])
    first = life(path, epochs=1)
    path.write_bytes(bundles[1])
    with pytest.raises(IncompatibleCheckpointError) as caught:
        life(path, epochs=1)
    message = str(caught.value)
    assert re.search(r"greeting: was 1\.0 \(sha256 \w{12}\), is 1\.1 \(sha256 \w{12}\)", message)
    assert "--accept-udf-change greeting" in message
    assert f"at epoch {first.epoch}" in message

    before = list(seen)
    checkpoint = life(path, epochs=1, start=ACCEPT)
    assert checkpoint.epoch > first.epoch
    assert checkpoint.udfs[0].version == "1.1"
    assert all(text.startswith("hello") for text in before)
    assert all(text.startswith("bye") for text in seen[len(before) :])
    (accepted,) = json.loads(checkpoint.properties[ACCEPTED])
    assert (accepted["name"], accepted["epoch"]) == ("greeting", first.epoch + 1)

    # From here on the new code is the old: no flag, or the same command again.
    assert life(path, epochs=1).udfs[0].version == "1.1"
    last = life(path, start=ACCEPT)
    assert last.is_final
    assert len(json.loads(last.properties[ACCEPTED])) == 1
    assert sorted(text.split()[1] for text in seen) == sorted(f"n{number}" for number in range(ROWS))


def test_an_accepted_change_is_in_the_event_log(life, bundles, tmp_path):
    path = tmp_path / "greeting.zip"
    path.write_bytes(bundles[0])
    life(path, epochs=1)
    path.write_bytes(bundles[1])
    life(path, epochs=1, start=ACCEPT)
    lines = [
        json.loads(line)
        for log in (tmp_path / "state").rglob("*")
        if log.is_file() and b'"UdfChangeAccepted"' in log.read_bytes()
        for line in log.read_text().splitlines()
    ]
    (note,) = [line for line in lines if line["event"] == "UdfChangeAccepted"]
    assert note["name"] == "greeting"
    assert note["before"].startswith("1.0 (sha256 ")
    assert note["after"].startswith("1.1 (sha256 ")


def test_the_same_code_at_another_place_is_no_change(life, bundles, tmp_path):
    (tmp_path / "a.zip").write_bytes(bundles[0])
    (tmp_path / "b.zip").write_bytes(bundles[0])
    life(tmp_path / "a.zip", epochs=1)
    assert life(tmp_path / "b.zip").is_final


def test_accepting_what_is_not_used_is_a_mistake(life, make_bundle):
    options = StartOptions(accept_udf_changes=frozenset({"greating"}))
    with pytest.raises(StartError, match=r"--accept-udf-change greating: .*\(known: greeting\)"):
        life(make_bundle(), start=options)


def test_a_distribution_with_another_version_is_a_change(pipeline, plugins):
    @udf
    def tidy(name: str) -> str:
        return name

    with plugins.registry.registering(Origin("acme-udfs", "3.1")):
        plugins.registry.add_udf(tidy)
    plan = plan_pipeline(pipeline([], "tidy"), plugins=plugins, environment={})
    checkpoint = CheckpointMetadata(udfs=[DistributionDigest(name="acme-udfs", version="3.0")])
    (change,) = compare_udfs(plan, checkpoint)
    assert str(change) == "acme-udfs: was 3.0, is 3.1"
    assert change.verdict is UdfVerdict.CHANGED


@pytest.mark.parametrize(
    ("before", "verdicts"),
    [
        ([], {"a": "new"}),
        ([("a", "1", "11")], {"a": "same"}),
        ([("a", "2", "11")], {"a": "same"}),
        ([("a", "1", "22")], {"a": "changed"}),
        ([("a", "1", "")], {"a": "changed"}),
        ([("b", "1", "11")], {"a": "new", "b": "removed"}),
    ],
)
def test_code_is_compared_by_its_digest(before, verdicts):
    pin = UdfPin(kind=UdfKind.BUNDLE, name="a", version="1", sha256="11")
    plan = Plan(job_id="p", nodes={}, edges=(), chains=(), udfs=(pin,))
    checkpoint = CheckpointMetadata(
        udfs=[
            DistributionDigest(name=name, version=version, sha256=bytes.fromhex(digest))
            for name, version, digest in before
        ]
    )
    assert {change.name: change.verdict.value for change in compare_udfs(plan, checkpoint)} == verdicts


def test_the_record_of_accepted_changes_is_bounded():
    change = UdfChange(name="a", verdict=UdfVerdict.CHANGED, before="1", after="2")
    checkpoint = CheckpointMetadata()
    for epoch in range(MAX_ACCEPTED + 5):
        checkpoint.properties[ACCEPTED] = record_accepted(checkpoint, [change], epoch=epoch)
    kept = json.loads(checkpoint.properties[ACCEPTED])
    assert [item["epoch"] for item in kept] == list(range(5, MAX_ACCEPTED + 5))
    assert record_accepted(CheckpointMetadata(), [], epoch=1) is None


def test_plan_against_shows_the_change(life, bundles, tmp_path, pipeline, plugins, monkeypatch, capsys):
    for module in (options, plan_command):
        monkeypatch.setattr(module, "installed_plugins", lambda: plugins)
    path = tmp_path / "greeting.zip"
    path.write_bytes(bundles[0])
    life(path, epochs=1)
    file = tmp_path / "pipeline.yaml"
    against = ["plan", str(file), "--against", str(tmp_path / "state")]
    assert main(against) == 0
    out = capsys.readouterr().out
    assert re.search(r"greeting +same", out)
    assert "Functions   bundle greeting 1.0 (sha256 " in out
    path.write_bytes(bundles[1])
    assert main(against) == 2
    out = capsys.readouterr().out
    assert re.search(r"greeting +changed +1\.0 \(sha256 \w{12}\) +1\.1 \(sha256 \w{12}\)", out)
    assert "the pipeline starts from it only with --accept-udf-change greeting." in out
    assert main([*against, "--format", "json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert document["comparison"]["needs_accept_udf_change"] == ["greeting"]
    assert document["udfs"][0]["functions"] == ["greet(name: string) -> string"]


def test_checkpoints_show_names_functions_and_accepted_changes(life, bundles, tmp_path, capsys):
    path = tmp_path / "greeting.zip"
    path.write_bytes(bundles[0])
    life(path, epochs=1)
    path.write_bytes(bundles[1])
    life(path, epochs=1, start=ACCEPT)
    capsys.readouterr()
    assert main(["checkpoints", "show", str(tmp_path / "state"), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert re.fullmatch(r"greeting 1\.1 \(sha256 \w{12}\)", document["udfs"][0])
    assert re.fullmatch(r"greeting: 1\.0 .* to 1\.1 .*, from epoch \d+", document["accepted_udf_changes"][0])
