"""What is packed of distributions, what the archives hold, and what is said of those that cannot be packed."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from arroyo_pack import building, packages
from arroyo_pack.archives import base_python, write_environment, write_zip
from arroyo_pack.packages import PackedFile, PackError, closure

from arroyo_core.errors import SetupError


class Site:
    """A folder of installed distributions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, name, *, requires=(), files=(), is_pure=True, has_record=True, version="1.0"):
        info = self.folder / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        lines = "".join(f"Requires-Dist: {line}\n" for line in requires)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{lines}")
        (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nRoot-Is-Purelib: {str(is_pure).lower()}\n")
        (info / "entry_points.txt").write_text(f"[arroyo_core]\n{name} = {name}\n")
        written = {f"{name}/__init__.py": f"NAME = {name!r}\n", **dict(files)}
        for path, text in written.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text)
        if has_record:
            inside = [
                *written,
                *(f"{info.name}/{each}" for each in ("METADATA", "WHEEL", "entry_points.txt", "RECORD")),
            ]
            # As installers write it: a script, and what was compiled.
            more = ["../../../bin/tool", f"{name}/__pycache__/__init__.cpython-311.pyc"]
            (info / "RECORD").write_text("".join(f"{path},,\n" for path in [*inside, *more]))


@pytest.fixture
def site(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return Site(folder)


def test_requirements_are_followed_and_what_spark_has_is_left_out(site):
    site.add("acme", requires=["helper>=1; python_version>'3'", "windows-only; sys_platform=='win32'", "pyspark>=3.5"])
    site.add("helper", requires=["deeper<2", "extra-thing; extra=='more'"])
    site.add("deeper")
    found = closure(["acme"])
    assert [package.name for package in found] == ["acme", "deeper", "helper"]
    assert {package.name: list(package.specifiers) for package in found} == {
        "acme": [],
        "deeper": ["<2"],
        "helper": [">=1"],
    }


def test_extras_bring_what_they_require(site):
    site.add("acme", requires=["helper[more]"])
    site.add("helper", requires=["thing; extra=='more'", "acme"])
    site.add("thing")
    assert [package.name for package in closure(["acme"])] == ["acme", "helper", "thing"]


def test_a_requirement_that_is_missing_is_named_with_who_requires_it(site):
    site.add("acme", requires=["nosuch-thing>=2"])
    with pytest.raises(PackError, match="nosuch-thing cannot be packed: acme requires it, and it is not installed"):
        closure(["acme"])
    with pytest.raises(PackError, match="'no such' is not the name of a distribution"):
        closure(["no such"])


@pytest.mark.parametrize(("is_pure", "files"), [(False, ()), (True, [("acme/fast.cpython-311.so", "")])])
def test_what_has_compiled_code_is_not_pure(site, is_pure, files):
    site.add("acme", is_pure=is_pure, files=files)
    (package,) = closure(["acme"])
    assert not package.is_pure


def test_a_fingerprint_follows_the_files(site):
    site.add("acme")
    (before,) = closure(["acme"])
    assert closure(["acme"])[0].fingerprint == before.fingerprint
    record = site.folder / "acme-1.0.dist-info/RECORD"
    record.write_text(record.read_text() + "acme/more.py,,\n")
    assert closure(["acme"])[0].fingerprint != before.fingerprint


def test_python_imports_from_the_zip_and_finds_plugins_there(site, tmp_path):
    site.add("acme", requires=["helper"])
    site.add("helper")
    path = tmp_path / "packed.zip"
    write_zip(closure(["acme"]), path)
    code = (
        f"import sys; sys.path.insert(0, {str(path)!r}); import acme, helper; from importlib.metadata import "
        "entry_points; print(acme.NAME, helper.NAME, *sorted(p.name for p in entry_points(group='arroyo_core')))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["acme", "helper", "acme", "helper"]
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    assert not [name for name in names if ".." in name or name.endswith(".pyc")]
    again = tmp_path / "again.zip"
    write_zip(closure(["acme"]), again)
    assert again.read_bytes() == path.read_bytes()


def unpacked(archive: Path, folder: Path) -> Path:
    folder.mkdir()
    # As Spark unpacks it.
    subprocess.run(["tar", "-xzf", archive, "-C", folder], check=True)
    return folder


def started(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    # As Spark starts it: by a relative path, in the folder of an executor.
    command = [f"./{folder.name}/bin/python", "-c", code]
    return subprocess.run(command, cwd=folder.parent, capture_output=True, text=True, check=False)


def test_an_environment_runs_wherever_it_is_unpacked_and_has_nothing_but_its_packages(site, tmp_path):
    site.add("acme")
    write_environment(closure(["acme"]), tmp_path / "packed.tar.gz", python=base_python())
    for place in ("here", "there"):
        folder = unpacked(tmp_path / "packed.tar.gz", tmp_path / place)
        done = started(folder, "import acme, sys; print(acme.NAME, sys.prefix)")
        assert done.stdout.split() == ["acme", str(folder)], done.stderr
        without = started(folder, "import pyarrow")
        assert "No module named 'pyarrow'" in without.stderr


def test_an_environment_whose_python_is_not_there_says_which(tmp_path):
    write_environment([], tmp_path / "packed.tar.gz", python="/nosuch/bin/python3")
    done = started(unpacked(tmp_path / "packed.tar.gz", tmp_path / "environment"), "print()")
    assert done.returncode == 127
    assert done.stderr.startswith("arroyo-environment: this machine has no /nosuch/bin/python3, which the environment")


def test_an_environment_whose_python_is_another_one_says_so(tmp_path):
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    write_environment([], tmp_path / "packed.tar.gz", python=str(other))
    done = started(unpacked(tmp_path / "packed.tar.gz", tmp_path / "environment"), "print()")
    assert done.returncode == 127
    assert f"arroyo-environment: {other} is another Python here" in done.stderr


def test_an_archive_that_is_too_large_is_refused_with_the_limit(site, tmp_path, monkeypatch):
    site.add("acme")
    monkeypatch.setenv("ARROYO_MAX_PACK_BYTES", "10")
    with pytest.raises(
        PackError, match=r"too large: .* at most 10B? in an archive for executors; ARROYO_MAX_PACK_BYTES"
    ):
        write_zip(closure(["acme"]), tmp_path / "packed.zip")


def test_what_has_no_list_of_its_files_cannot_be_packed(site, tmp_path):
    site.add("acme", has_record=False)
    with pytest.raises(PackError, match=r"acme 1\.0 cannot be packed: its metadata has no RECORD"):
        write_zip(closure(["acme"]), tmp_path / "packed.zip")


def test_a_file_that_is_missing_is_named(site, tmp_path):
    site.add("acme")
    (site.folder / "acme/__init__.py").unlink()
    with pytest.raises(PackError, match=r"acme/__init__\.py is missing; install it again"):
        write_zip(closure(["acme"]), tmp_path / "packed.zip")


def names_in(path):
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def test_what_an_installer_notes_of_this_machine_is_not_sent(site, tmp_path):
    origin = '{"url": "https://me:s3cr3t@git.acme.example/acme.git", "vcs_info": {"vcs": "git", "commit_id": "1"}}'
    site.add("acme", files=[("acme-1.0.dist-info/direct_url.json", origin), ("acme-1.0.dist-info/uv_cache.json", "{}")])
    write_zip(closure(["acme"]), tmp_path / "packed.zip")
    write_environment(closure(["acme"]), tmp_path / "packed.tar.gz", python=base_python())
    assert sorted(names_in(tmp_path / "packed.zip")) == [
        "acme-1.0.dist-info/METADATA",
        "acme-1.0.dist-info/RECORD",
        "acme-1.0.dist-info/WHEEL",
        "acme-1.0.dist-info/entry_points.txt",
        "acme/__init__.py",
    ]
    unpacked(tmp_path / "packed.tar.gz", tmp_path / "here")
    assert not [path for path in (tmp_path / "here").rglob("*") if path.is_file() and b"s3cr3t" in path.read_bytes()]


@pytest.mark.parametrize("name", [".env", ".env.local", ".netrc", ".pypirc", "pip.conf"])
def test_secrets_in_the_folder_of_a_project_are_not_sent(tmp_path, monkeypatch, name):
    project = tmp_path / "project"
    (project / "src/acme").mkdir(parents=True)
    (project / "src/acme/__init__.py").write_text("")
    (project / "src/acme/data.txt").write_text("sent")
    (project / "src/acme" / name).write_text("TOKEN=s3cr3t")
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "acme"\nversion = "1.0"\n'
        '[tool.hatch.build.targets.wheel]\npackages = ["src/acme"]\n'
    )
    editable(tmp_path / "site", project, monkeypatch)
    write_zip(closure(["acme"]), tmp_path / "packed.zip")
    names = names_in(tmp_path / "packed.zip")
    assert "acme/data.txt" in names
    assert f"acme/{name}" not in names


def editable(folder, project, monkeypatch):
    """An installed distribution that says that it is the project in that folder."""
    info = folder / "acme-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nRoot-Is-Purelib: true\n")
    (info / "direct_url.json").write_text(json.dumps({"url": project.as_uri(), "dir_info": {"editable": True}}))
    monkeypatch.syspath_prepend(str(folder))


def test_a_wheel_with_names_that_lead_out_is_refused(tmp_path, monkeypatch):
    def build(project, into):
        with zipfile.ZipFile(into / "acme.whl", "w") as wheel:
            wheel.writestr("../../../.ssh/authorized_keys", "x")
        return into / "acme.whl"

    monkeypatch.setattr(packages, "build_wheel", build)
    editable(tmp_path / "site", tmp_path / "project", monkeypatch)
    (tmp_path / "project").mkdir()
    with pytest.raises(PackError, match="authorized_keys' would be outside of it"):
        write_zip(closure(["acme"]), tmp_path / "packed.zip")


def test_what_a_builder_says_of_its_index_has_no_password(tmp_path, monkeypatch):
    def refused(command, **options):
        said = "error: cannot fetch https://me:s3cr3t@index.acme.example/simple/hatchling/\n"
        return subprocess.CompletedProcess(command, 1, stdout="", stderr=said)

    monkeypatch.setattr(building.subprocess, "run", refused)
    with pytest.raises(SetupError, match=r"https://index\.acme\.example/simple") as raised:
        building.build_wheel(tmp_path, tmp_path)
    assert "s3cr3t" not in str(raised.value)


@pytest.mark.parametrize("name", ["/$(touch pwned)/python3", '/"; touch pwned; "/python3', "/`touch pwned`", "/it's"])
def test_the_path_of_a_python_is_no_program_on_executors(tmp_path, name):
    write_environment([], tmp_path / "packed.tar.gz", python=name)
    done = started(unpacked(tmp_path / "packed.tar.gz", tmp_path / "environment"), "print()")
    assert done.returncode == 127
    assert f"this machine has no {name}," in done.stderr
    assert not list(tmp_path.rglob("pwned"))


def test_a_path_of_a_python_with_lines_of_its_own_is_refused(tmp_path):
    with pytest.raises(PackError, match="control characters"):
        write_environment([], tmp_path / "packed.tar.gz", python="/x\ninclude-system-site-packages = true")


def test_an_archive_is_given_up_as_soon_as_it_is_too_large(site, tmp_path, monkeypatch):
    site.add("acme", files=[("acme/a.py", "")])
    monkeypatch.setenv("ARROYO_MAX_PACK_BYTES", "10")
    read = []
    package = closure(["acme"])[0]
    files = [PackedFile(each.name, lambda each=each: read.append(each.name) or each.read()) for each in package.files()]
    monkeypatch.setattr(type(package), "files", lambda _: iter(files))
    with pytest.raises(PackError, match="too large"):
        write_zip([package], tmp_path / "packed.zip")
    assert len(read) == 1
