"""Who writes a class archive, and who uses it."""

import os
import time
from pathlib import Path

import pytest

from arroyo_core.local_folders import CLASS_ARCHIVE
from arroyo_core.spark.class_archive import archive_options

MAGIC = bytes.fromhex("a8ab0bf0")


@pytest.fixture
def java(tmp_path):
    command = tmp_path / "jdk" / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.touch()
    (tmp_path / "jdk" / "release").write_text("17.0.1")
    return str(command)


@pytest.fixture
def jars(tmp_path):
    folder = tmp_path / "jars"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "archives"
    monkeypatch.setenv(CLASS_ARCHIVE.variable, str(folder))
    return folder


def named_in(options: list[str]) -> Path:
    return Path(options[0].partition("=")[2])


def test_the_first_jvm_writes_it_and_the_next_ones_use_it(java, jars):
    first = archive_options(java, jars)
    assert first[0].startswith("-XX:ArchiveClassesAtExit=")
    # The first one is still running.
    assert archive_options(java, jars) == []
    named_in(first).write_bytes(MAGIC + b"classes")
    assert archive_options(java, jars)[0] == f"-XX:SharedArchiveFile={named_in(first)}"


def test_another_java_or_other_jars_need_another_one(java, jars, tmp_path):
    archive = named_in(archive_options(java, jars))
    os.utime(jars, ns=(1, 1))
    other = archive_options(java, jars)
    assert other[0].startswith("-XX:ArchiveClassesAtExit=")
    assert named_in(other) != archive
    (tmp_path / "jdk" / "release").write_text("17.0.2")
    assert named_in(archive_options(java, jars)) not in {archive, named_in(other)}


def test_what_a_killed_jvm_left_is_written_anew(java, jars):
    archive = named_in(archive_options(java, jars))
    archive.write_bytes(bytes(4) + b"half")
    assert archive_options(java, jars) == []
    long_ago = time.time() - 3600
    os.utime(archive, (long_ago, long_ago))
    assert archive_options(java, jars)[0] == f"-XX:ArchiveClassesAtExit={archive}"


def test_only_those_that_were_used_last_are_kept(java, jars, folder):
    names = []
    for number in range(6):
        os.utime(jars, ns=(number, number))
        archive = named_in(archive_options(java, jars))
        archive.write_bytes(MAGIC)
        os.utime(archive, (number, number))
        names.append(archive.name)
    assert sorted(path.name for path in folder.iterdir()) == sorted(names[-4:])


def test_a_folder_that_others_can_write_to_is_not_used(java, jars, folder):
    folder.mkdir()
    folder.chmod(0o777)
    assert archive_options(java, jars) == []


def test_it_can_be_turned_off(java, jars, monkeypatch):
    monkeypatch.setenv(CLASS_ARCHIVE.variable, "off")
    assert archive_options(java, jars) == []
