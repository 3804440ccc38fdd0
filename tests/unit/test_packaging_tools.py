"""The scripts of the build fail where they should, and say why."""

import importlib.util
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))

    def load(name):
        spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return load


def fake_program(folder, name, *, says, code=0):
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {code}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return path


class TestJava:
    @pytest.mark.parametrize(
        ("report", "major"),
        [
            ('openjdk version "17.0.15" 2025-04-15', 17),
            ('java version "1.8.0_392"', 8),
            ('openjdk version "21" 2023-09-19 LTS', 21),
            ("no java here", None),
        ],
    )
    def test_the_major_version_is_read_from_the_report(self, tool, report, major):
        assert tool("check_java").major_version(report) == major

    def test_a_missing_java_is_one_sentence_with_how_to_install_it(self, tool, tmp_path):
        complaint = tool("check_java").complaint({"PATH": str(tmp_path)})
        assert "no 'java' on the PATH" in complaint
        assert "openjdk-17-jre-headless" in complaint
        assert "\n" not in complaint

    def test_an_old_java_is_named_with_its_version(self, tool, tmp_path):
        java = fake_program(tmp_path, "java", says='openjdk version "11.0.2" 2019-01-15')
        complaint = tool("check_java").complaint({"PATH": str(tmp_path)})
        assert f"{java} is Java 11" in complaint
        assert "17 or newer" in complaint

    def test_a_java_home_that_leads_nowhere_is_named(self, tool, tmp_path):
        complaint = tool("check_java").complaint({"JAVA_HOME": str(tmp_path), "PATH": os.environ["PATH"]})
        assert str(tmp_path / "bin" / "java") in complaint

    def test_a_java_that_will_do_is_no_complaint(self, tool, tmp_path):
        fake_program(tmp_path, "java", says='openjdk version "17.0.15" 2025-04-15')
        assert tool("check_java").complaint({"PATH": str(tmp_path)}) is None

    def test_the_command_prints_no_traceback(self, tmp_path):
        command = [sys.executable, str(ROOT / "tools" / "check_java.py")]
        answer = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
        assert answer.returncode == 1
        assert answer.stderr.startswith("Spark needs Java")
        assert len(answer.stderr.splitlines()) == 1


class TestPython:
    def run(self, **environment):
        command = ["/bin/sh", str(ROOT / "tools" / "find_python.sh")]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def test_the_python_that_is_asked_for_is_taken(self):
        answer = self.run(PYTHON=sys.executable, PATH="/nowhere", HOME="/nowhere")
        assert answer.stdout.strip() == sys.executable

    def test_without_a_usable_python_the_message_says_what_to_install(self, tmp_path):
        fake_program(tmp_path, "python3", says="broken", code=1)
        answer = self.run(PATH=str(tmp_path), HOME=str(tmp_path))
        assert answer.returncode == 1
        assert "Python 3.11 or newer" in answer.stderr
        assert "python3-venv" in answer.stderr

    def test_a_pyenv_version_is_found_when_its_shims_do_not_start(self, tmp_path):
        fake_program(tmp_path, "python3.11", says="pyenv: python3.11: command not found", code=127)
        real = tmp_path / ".pyenv" / "versions" / "3.11.9" / "bin"
        real.mkdir(parents=True)
        (real / "python3").symlink_to(sys.executable)
        answer = self.run(PATH=str(tmp_path), HOME=str(tmp_path))
        assert answer.stdout.strip() == str(real / "python3")


class TestInterpreters:
    def test_a_shim_that_does_not_start_is_no_interpreter(self, tool, tmp_path):
        shim = fake_program(tmp_path, "python3.12", says="pyenv: python3.12: command not found", code=127)
        assert tool("interpreters").started(shim, "3.12") is None

    def test_another_version_than_its_name_says_is_no_interpreter(self, tool):
        assert tool("interpreters").started(Path(sys.executable), "3.99") is None

    def test_an_interpreter_is_given_by_the_path_of_the_program_itself(self, tool, tmp_path):
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        shim = tmp_path / f"python{version}"
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        shim.chmod(0o755)
        assert tool("interpreters").started(shim, version) == Path(sys.executable)


REPORT = """<testsuites><testsuite name="x" tests="5" failures="{failures}" errors="0" skipped="2" time="1.5">
<testcase name="a"><skipped message="no S3 here"/></testcase>
<testcase name="b"><skipped message="no S3 here"/></testcase>
</testsuite></testsuites>"""

FAILED = """<testsuites><testsuite name="x" tests="2" failures="1" errors="0" skipped="0" time="1.5">
<testcase classname="tests.test_x" name="test_a"><failure message="assert 1 == 2&#10;  +1">...</failure></testcase>
<testcase classname="tests.test_x" name="test_b"/>
</testsuite></testsuites>"""

PASSED = """<testsuites><testsuite name="x" tests="1" failures="0" errors="0" skipped="0" time="1.5">
<testcase classname="tests.test_x" name="test_a"/>
</testsuite></testsuites>"""


class TestSecondTry:
    @pytest.fixture
    def run(self, tool, tmp_path, monkeypatch):
        """What a run leaves in which `py311-core` failed, and what is run then."""
        monkeypatch.chdir(tmp_path)
        tried = []

        class Ran:
            returncode = 0

        def note(command, **_):
            tried.append(command[command.index("--") + 1 :])
            return Ran

        def begin(*, failed, report=FAILED, environments=("py311-core",), code=1):
            cache = tmp_path / ".tox" / "py311-core" / ".pytest_cache" / "v" / "cache"
            cache.mkdir(parents=True)
            (cache / "lastfailed").write_text(json.dumps(dict.fromkeys(failed, True)))
            (tmp_path / "py311-core.xml").write_text(report)
            said = {name: {"result": {"success": False}, "test": [{"retcode": code}]} for name in environments}
            for name in {"py311-arroyo-std", "lint"} - set(environments):
                said[name] = {"result": {"success": True}}
            # What can be asked for by name, and was not run.
            said["py312-arroyo-std"] = {}
            (tmp_path / "tox.json").write_text(json.dumps({"testenvs": said}))
            second_try = tool("second_try")
            monkeypatch.setattr(second_try.subprocess, "run", note)
            return second_try.main(tmp_path, ["py311-core", "py311-arroyo-std", "lint"]), tried

        return begin

    def test_the_tests_that_failed_are_run_once_more_and_nothing_else(self, run, tmp_path):
        status, tried = run(failed=["tests/test_x.py::test_a"])
        assert status == 0
        assert len(tried) == 1
        assert tried[0][-1:] == ["tests/test_x.py::test_a"]
        assert (tmp_path / "first" / "py311-core.xml").exists()

    def test_an_environment_that_failed_without_a_failed_test_is_not_tried_again(self, run):
        assert run(failed=["tests/test_x.py::test_a"], environments=["py311-core", "lint"]) == (1, [])

    def test_failures_that_pytest_did_not_report_as_tests_are_not_tried_again(self, run):
        assert run(failed=["tests/test_x.py::test_a", "tests/test_y.py"]) == (1, [])

    def test_a_file_that_cannot_be_collected_is_not_tried_again(self, run):
        assert run(failed=["tests/test_x.py"]) == (1, [])

    def test_a_run_that_was_interrupted_is_not_tried_again(self, run):
        assert run(failed=["tests/test_x.py::test_a"], code=2) == (1, [])

    def test_many_failures_are_not_tried_again(self, run):
        failed = [f"tests/test_x.py::test_{number}" for number in range(13)]
        assert run(failed=failed, report=FAILED.replace('failures="1"', 'failures="13"')) == (1, [])


class TestSummary:
    def test_skips_are_counted_with_their_reason_and_all_is_summed(self, tool, tmp_path, capsys):
        (tmp_path / "py311-core.xml").write_text(REPORT.format(failures=0))
        (tmp_path / "py312-core.xml").write_text(REPORT.format(failures=0))
        assert tool("summary").main(str(tmp_path)) == 0
        shown = capsys.readouterr().out
        assert "skipped 4 x: no S3 here" in shown
        assert "6 passed, 0 failed, 4 skipped in 3.00s" in shown

    def test_a_failure_in_any_environment_fails_the_summary(self, tool, tmp_path):
        (tmp_path / "py311-core.xml").write_text(REPORT.format(failures=0))
        (tmp_path / "py312-core.xml").write_text(REPORT.format(failures=1))
        assert tool("summary").main(str(tmp_path)) == 1

    def test_what_passed_in_a_second_try_is_named_and_counted_once(self, tool, tmp_path, capsys):
        (tmp_path / "first").mkdir()
        (tmp_path / "first" / "py311-core.xml").write_text(FAILED)
        (tmp_path / "py311-core.xml").write_text(PASSED)
        assert tool("summary").main(str(tmp_path)) == 0
        shown = capsys.readouterr().out
        assert "UNSTABLE: tests.test_x.test_a failed beside other tests and passed alone: assert 1 == 2" in shown
        assert "2 passed, 0 failed, 0 skipped" in shown

    def test_what_failed_in_a_second_try_too_fails_the_summary(self, tool, tmp_path, capsys):
        (tmp_path / "first").mkdir()
        for folder in (tmp_path, tmp_path / "first"):
            (folder / "py311-core.xml").write_text(FAILED)
        assert tool("summary").main(str(tmp_path)) == 1
        assert "UNSTABLE" not in capsys.readouterr().out

    def test_no_reports_at_all_are_a_failure(self, tool, tmp_path):
        assert tool("summary").main(str(tmp_path)) == 1


class TestWheels:
    def test_the_fingerprint_follows_content_and_names_but_not_caches(self, tool, tmp_path):
        wheels, distributions = tool("wheels"), tool("distributions")
        package = tmp_path / "src" / "acme"
        (package / "__pycache__").mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (tmp_path / "pyproject.toml").write_text('[project]\nname = "acme"\nversion = "1"\n')
        acme = distributions.Distribution("acme", tmp_path)
        before = wheels.fingerprint(acme)
        (package / "__pycache__" / "x.pyc").write_text("cache")
        assert wheels.fingerprint(acme) == before
        (package / "plugin.py").write_text("x = 1\n")
        changed = wheels.fingerprint(acme)
        assert changed != before
        (package / "plugin.py").rename(package / "other.py")
        assert wheels.fingerprint(acme) not in (before, changed)


class TestInstall:
    def test_wheels_are_installed_again_though_their_version_is_there(self, tool):
        wheel = "dist/arroyo_std-0.1.0-py3-none-any.whl"
        command = tool("install").install_command([wheel], constraints="pins.txt", is_offline=False)
        assert "--reinstall-package=arroyo-std" in command
        assert "--offline" not in command

    def test_only_the_wheel_of_pyspark_needs_no_hash_since_it_was_built_here(self, tool):
        pins = "a==1 \\\n    --hash=sha256:00\npyspark==4.3.0 \\\n    --hash=sha256:11 \\\n    --hash=sha256:22\nz==1\n"
        kept = "a==1 \\\n    --hash=sha256:00\npyspark==4.3.0\nz==1\n"
        assert tool("install").without_hashes_of_spark(pins) == kept

    def test_the_cache_is_asked_before_the_index(self, tool, monkeypatch):
        asked = []

        def run(command, **_options):
            asked.append("--offline" in command)
            return subprocess.CompletedProcess(command, returncode=2 if "--offline" in command else 0)

        install = tool("install")
        monkeypatch.setattr(install.subprocess, "run", run)
        assert install.main(["--group", "test"]) == 0
        assert asked == [True, False]


class TestSparks:
    def test_the_pins_of_a_row_take_the_place_of_the_others(self, tool):
        pins = "a==1 \\\n    --hash=sha256:00\nb==1 ; x == 'y' \\\n    --hash=sha256:01\nc==1\n"
        row = "# written\nb==2 \\\n    --hash=sha256:02\n"
        assert tool("sparks").replace_pins(pins, row) == f"a==1 \\\n    --hash=sha256:00\nc==1\n{row}"

    def test_a_wheel_that_is_there_is_not_built_again(self, tool, tmp_path, monkeypatch):
        sparks = tool("sparks")
        monkeypatch.setattr(sparks.subprocess, "run", lambda *_, **__: pytest.fail("it was built"))
        pins = tmp_path / "pins.txt"
        pins.write_text("py4j==1\npyspark==3.5.7 \\\n    --hash=sha256:00\n")
        wheel = tmp_path / "pyspark-3.5.7-py2.py3-none-any.whl"
        wheel.touch()
        assert sparks.get_wheel(pins, tmp_path) == wheel

    def test_a_download_that_fails_is_a_failure_and_leaves_nothing(self, tool, tmp_path, monkeypatch, capsys):
        sparks = tool("sparks")

        def fail(command, **_options):
            raise subprocess.CalledProcessError(1, command)

        monkeypatch.setattr(sparks.subprocess, "run", fail)
        monkeypatch.setattr(sys, "argv", ["sparks.py", "wheel", "spark35", "--into", str(tmp_path / "wheels")])
        assert sparks.main() == 1
        assert "no wheel of pyspark for spark35" in capsys.readouterr().err
        assert list((tmp_path / "wheels").iterdir()) == []

    def test_every_row_has_pins_of_its_release_with_hashes(self, tool):
        sparks = tool("sparks")
        for row in sparks.ROWS:
            version, lines = sparks.pin_of("pyspark", row.pins.read_text())
            assert version.startswith(f"{row.release}.")
            assert "--hash=sha256:" in lines

    def test_no_distribution_brings_pyspark_but_by_an_extra(self, tool):
        for found in tool("distributions").distributions():
            names = {line.split(">")[0].split("[")[0] for line in found.metadata["project"]["dependencies"]}
            assert not names & {"pyspark", "py4j", "pandas"}, found.name


def test_every_folder_of_tests_is_run_by_an_environment_of_the_matrix():
    written = (ROOT / "toxfile.py").read_text()
    folders = {path.parent.name for path in ROOT.glob("tests/*/test_*.py")} | {"unit"}
    assert {name for name in folders if f'"{name}"' not in written and f'"tests/{name}"' not in written} == set()
