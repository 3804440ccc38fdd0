"""`arroyo doctor`, in process, on machines and stores with faults."""

from __future__ import annotations

import json
import os
import sys
import time
import types
from pathlib import Path

import pytest
from arroyo_devtools import doctor
from arroyo_devtools.doctor import machine, pipeline, session, store
from arroyo_devtools.doctor.findings import Finding, Level, run_checks

from arroyo_core.api import Origin, Registry
from arroyo_core.cli.main import main
from arroyo_core.plugin import PluginReport, PluginSet
from arroyo_core.state import StorageProvider
from arroyo_core.state.local_storage import LocalDriver


def levels(findings) -> dict[str, Level]:
    return {finding.check: finding.level for finding in findings}


def only(findings) -> Finding:
    (finding,) = findings
    return finding


@pytest.fixture(autouse=True)
def _healthy_machine(tmp_path_factory, monkeypatch):
    """Caches, a Java and memory that do not depend on the machine under the tests."""
    folder = tmp_path_factory.mktemp("machine")
    for variable in ("ARROYO_STATE_CACHE", "ARROYO_UDF_CACHE"):
        monkeypatch.setenv(variable, str(folder / variable.lower()))
    write_java(folder, "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(folder))
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setattr(machine, "_available_memory", lambda: 2**36)


def write_java(home: Path, version: str) -> None:
    java = home / "bin/java"
    java.parent.mkdir(exist_ok=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)


def test_a_healthy_machine_has_a_line_for_each_check(tmp_path, capsys):
    assert main(["doctor", "--no-spark", "--checkpoint", str(tmp_path / "new" / "state")]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split(":")[0].split(maxsplit=1)[1] for line in lines if not line.startswith(" ")]
    expected = {
        "java",
        "python",
        "pyspark",
        "pyarrow",
        "protobuf",
        "state cache",
        "UDF cache",
        "disk",
        "memory",
        "clock",
    }
    assert expected <= set(names)
    assert {"plugin std", "plugin filesystem", "store"} <= set(names)
    assert list(tmp_path.iterdir()) == [], "it cleans up after itself"


def test_json_is_one_document(tmp_path, capsys):
    assert main(["doctor", "--no-spark", "--format", "json", "--checkpoint", "memory://doctor-json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["is_ok"] is True
    assert {"check", "level", "message", "fix"} == set(document["findings"][0])


def test_the_pipelines_own_store_is_checked(tmp_path, capsys):
    job = tmp_path / "state/job/checkpoints/1/checkpoint.metadata"
    job.parent.mkdir(parents=True)
    job.write_bytes(b"data of a job")
    file = tmp_path / "p.yaml"
    text = "name: p\ncheckpoint: {url: URL}\nnodes:\n  - {id: a, operator: impulse.source, config: {count: 1}}\n"
    file.write_text(
        text.replace("URL", str(tmp_path / "state")) + "  - {id: b, operator: std.blackhole, inputs: [a]}\n"
    )
    before = sorted(tmp_path.rglob("*"))
    assert main(["doctor", str(file), "--no-spark"]) == 0
    assert f"store: write and read: {tmp_path}/state" in capsys.readouterr().out
    assert sorted(tmp_path.rglob("*")) == before
    assert job.read_bytes() == b"data of a job"
    file.write_text("name: p\nnodes:\n  - {id: a, operator: std.blackhol, inputs: [a]}\n")
    assert main(["doctor", str(file), "--no-spark"]) == 1
    assert f"-> arroyo validate {file}" in capsys.readouterr().out


def test_java_is_found(monkeypatch):
    finding = only(machine.check_java_found())
    assert finding.level is Level.OK
    assert finding.message.startswith("Java 17 at ")
    assert "JAVA_HOME is" in finding.message


def test_missing_and_old_java_fail_with_advice(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = only(machine.check_java_found())
    assert (finding.level, "no Java found in JAVA_HOME" in finding.message) == (Level.FAILED, True)
    assert "install it" in finding.fix
    write_java(tmp_path, "1.8.0_1")
    assert "is Java 8" in only(machine.check_java_found()).message


def test_another_python_for_workers_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert [finding.check for finding in machine.check_python()] == ["python"]
    other = tmp_path / "python"
    monkeypatch.setenv("PYSPARK_PYTHON", str(other))
    assert levels(machine.check_python())["python of workers"] is Level.FAILED
    for version, level in (("3.1.4", Level.FAILED), (sys.version.split()[0], Level.WARNING)):
        other.write_text(f"#!/bin/sh\necho {version}\n")
        other.chmod(0o755)
        assert levels(machine.check_python())["python of workers"] is level


def test_packages_outside_their_limits_fail(monkeypatch):
    installed = {"pyspark": "3.4.1", "pyarrow": "22.0.0"}

    def version(name: str) -> str:
        if name not in installed:
            raise machine.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(machine, "version", version)
    wanted = ["pyspark<5,>=3.5; extra == 'spark'", "pyarrow>=22", "pandas<3; extra == 'spark'", "x; extra=='y'"]
    monkeypatch.setattr(machine, "requires", lambda _: wanted)
    found = {finding.check: finding for finding in machine.check_packages()}
    assert found["pyspark"].message == "3.4.1 is installed, and arroyo-core needs <5,>=3.5"
    assert found["pyspark"].fix == "pip install 'arroyo-core[spark]'"
    assert found["pyarrow"].level is Level.OK
    assert found["pandas"].message == "is not installed"
    assert "x" not in found
    # As a vendor numbers it.
    installed["pyspark"] = "3.5.2-amzn-1"
    assert levels(machine.check_packages())["pyspark"] is Level.OK
    del installed["pyspark"]
    monkeypatch.setitem(sys.modules, "pyspark", None)
    found = {finding.check: finding for finding in machine.check_packages()}
    assert found["pyspark"].level is Level.FAILED
    assert found["pyspark"].message == (
        "is not installed: pipelines can be checked and planned here, and not run on Spark"
    )
    installed["pyspark-client"] = "4.2.0"
    found = {finding.check: finding for finding in machine.check_packages()}
    assert found["pyspark"].level is Level.OK
    assert "pyspark-client 4.2.0" in found["pyspark"].message


def test_scarce_room_and_memory_are_told(tmp_path, monkeypatch):
    for free, level in ((2**40, Level.OK), (2**30, Level.WARNING), (2**20, Level.FAILED)):
        monkeypatch.setattr(machine.shutil, "disk_usage", lambda _, free=free: types.SimpleNamespace(free=free))
        monkeypatch.setattr(machine, "_available_memory", lambda free=free: free)
        assert levels(machine.check_disk())["disk"] is level
        assert only(machine.check_memory()).level is level
    monkeypatch.setattr(machine, "_available_memory", lambda: None)
    assert list(machine.check_memory()) == []


def test_cache_folders_must_be_private(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("ARROYO_STATE_CACHE", str(folder))
    assert levels(machine.check_disk())["state cache"] is Level.OK
    assert not folder.exists()
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    assert levels(machine.check_disk())["state cache"] is Level.FAILED
    folder.chmod(0o700)
    assert levels(machine.check_disk())["state cache"] is Level.OK
    monkeypatch.setenv("ARROYO_STATE_CACHE", "off")
    assert levels(machine.check_disk())["state cache"] is Level.OK
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/proc/nowhere")
    if os.getuid() != 0:
        assert levels(machine.check_disk())["Spark's folder"] is Level.FAILED


def test_the_size_and_age_of_the_state_cache_are_told(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("ARROYO_STATE_CACHE", str(folder))
    (folder / "0123" / "4567-0").mkdir(parents=True)
    folder.chmod(0o700)
    for name, age_s in (("1-aa.arrow", 7200), ("2-bb.arrow", 1), ("unfinished-cc", 1)):
        path = folder / "0123" / "4567-0" / name
        path.write_bytes(bytes(1024))
        os.utime(path, (time.time() - age_s, time.time() - age_s))
    message = next(finding.message for finding in machine.check_disk() if finding.check == "state cache")
    assert message == f"{folder}: 3.0 KiB in 2 entries of 1 jobs, the oldest unused for 2 h, 1 left unfinished"


def test_a_clock_that_jumps_or_is_in_the_past_is_told(monkeypatch):
    assert only(machine.check_clock()).level is Level.OK
    now = time.time()
    ticks = iter([now, now + 90])
    monkeypatch.setattr(machine.time, "time", lambda: next(ticks))
    assert "it jumped by" in only(machine.check_clock()).message
    monkeypatch.undo()
    steady = time.monotonic()
    monkeypatch.setattr(machine.time, "time", lambda: 86_400.0 + time.monotonic() - steady)
    assert only(machine.check_clock()).message.startswith("it says 1970-01-02")


def test_each_plugin_is_told_with_its_error(monkeypatch):
    reports = [
        PluginReport("std", Origin("arroyo-std", "1"), "x", operators=("std.a",)),
        PluginReport("broken", Origin("acme", "2"), "x", error="ImportError: no module named acme_client"),
        PluginReport("quiet", Origin("acme", "2"), "x", is_blocked=True),
    ]
    monkeypatch.setattr(pipeline, "installed_plugins", lambda: PluginSet(Registry(), reports))
    fine, broken, blocked = pipeline.check_plugins()
    assert fine.level is Level.OK
    assert broken.message == "acme 2 does not load: ImportError: no module named acme_client"
    assert (broken.level, blocked.level) == (Level.FAILED, Level.WARNING)
    monkeypatch.setattr(pipeline, "installed_plugins", lambda: PluginSet(Registry(), []))
    assert only(pipeline.check_plugins()).message == "none is installed"


def test_a_check_that_breaks_off_is_a_finding(capsys):
    def broken():
        yield Finding("a", Level.OK, "fine")
        raise KeyError("x")

    found = list(run_checks([("a", broken), ("b", lambda: [Finding("b", Level.OK, "fine")])]))
    assert [finding.level for finding in found] == [Level.OK, Level.FAILED, Level.OK]
    doctor.print_finding(found[1])
    assert capsys.readouterr().out == "failed  a: the check broke off: KeyError: 'x'\n        -> more with --debug\n"


class Overwriting(LocalDriver):
    """A create that does not mind what is there."""

    def create(self, path, data):
        self.write(path, data)
        return True


class Racy(LocalDriver):
    """Looks first and writes then, as a careless implementation does."""

    def create(self, path, data):
        if (self._root / path).exists():
            return False
        # The gap in which another writer looks, too; the check that is tested has to find it.
        time.sleep(0.01)
        self.write(path, data)
        return True


class Late(LocalDriver):
    """Lists what was there some time ago."""

    def list(self, prefix):
        return super().list(prefix)[1:]


class Stale(LocalDriver):
    """Reads what was first written."""

    def __init__(self, root):
        super().__init__(root)
        self._first = {}

    def read(self, path):
        return self._first.setdefault(path, super().read(path))


class Immortal(LocalDriver):
    def delete(self, path):
        return


class Ahead(LocalDriver):
    def modified_us(self, path):
        return super().modified_us(path) + 60_000_000


class Forbidden(LocalDriver):
    def write(self, path, data, *, is_durable=True):
        raise PermissionError(13, "Access Denied")


@pytest.mark.parametrize(
    ("driver", "check", "level", "message"),
    [
        (Overwriting, "put-if-absent", Level.FAILED, "a second writer is not refused"),
        (Racy, "put-if-absent, raced", Level.FAILED, "writers at once"),
        (Late, "list", Level.FAILED, "of 5 files just written, a listing has 4"),
        (Stale, "write and read", Level.FAILED, "reads as b'first'"),
        (Immortal, "list", Level.FAILED, "still listed"),
        (Immortal, "delete", Level.FAILED, "can still be read"),
        (Ahead, "clock", Level.WARNING, "differ by 60 s"),
        (Forbidden, "write and read", Level.FAILED, "Access Denied"),
    ],
)
def test_a_store_that_cannot_be_trusted_is_found(tmp_path, driver, check, level, message):
    def open_store(url):
        return StorageProvider(url, driver=driver(url), attempts=1)

    found = {finding.check: finding for finding in store.check_store(str(tmp_path / "store"), open_store)}
    assert found[f"store: {check}"].level is level
    assert message in found[f"store: {check}"].message
    assert found[f"store: {check}"].fix


def test_files_that_would_not_go_are_told(tmp_path):
    def open_store(url):
        return StorageProvider(url, driver=Immortal(url))

    last = list(store.check_store(str(tmp_path), open_store))[-1]
    assert last.check == "store: cleaning"
    assert "files are left in" in last.message


def test_a_slow_store_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "SLOW_MS", 0)
    assert levels(store.check_store(str(tmp_path)))["store: latency"] is Level.WARNING


def test_a_store_that_cannot_be_opened_is_told_without_its_password():
    finding = only(store.check_store("nosuch://me:secret@host/x"))
    assert finding.level is Level.FAILED
    assert "cannot open nosuch://host/x" in finding.message
    assert "secret" not in finding.message


def test_workers_with_other_packages_are_found():
    here = {"arroyo-core": "1", "arroyo-std": "1"}
    version = ".".join(map(str, sys.version_info[:3]))
    where = ("h", version, "/python")
    assert session._worker_finding(*where, here, here).level is Level.OK
    old = session._worker_finding(*where, {"arroyo-core": "1", "arroyo-std": None}, here)
    assert old.message == f"Python {version} at /python on h: arroyo-std is missing (driver: 1)"
    assert session._worker_finding("h", "2.7.1", "/python", here, here).level is Level.FAILED


def test_a_spark_that_does_not_start_fails(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("JAVA_HOME", str(Path(tmp_path)))
    assert main(["doctor", "--format", "json"]) == 1
    found = {finding["check"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert found["spark"]["level"] == "failed"
    assert "no Java found" in found["spark"]["message"]


def test_a_pyspark_that_pip_knows_nothing_of_is_found(monkeypatch):
    import pyspark

    def version(name: str) -> str:
        raise machine.PackageNotFoundError(name)

    monkeypatch.setattr(machine, "version", version)
    monkeypatch.setattr(machine, "requires", lambda _: ["pyspark<5,>=3.5; extra == 'spark'"])
    (found,) = machine.check_packages()
    assert found.message == f"{pyspark.__version__} (supported: <5,>=3.5)"
