import sys
from types import SimpleNamespace

import pytest

from arroyo_core.errors import SetupError
from arroyo_core.spark.java import check_java, java_version


def fake_java(folder, text, *, status=0):
    (folder / "bin").mkdir()
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\nprintf '%s' '{text}' >&2\nexit {status}\n")
    java.chmod(0o755)
    return str(java)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("no idea", None),
    ],
)
def test_versions_are_read_as_java_prints_them(tmp_path, text, version):
    assert java_version(fake_java(tmp_path, text)) == version


def test_a_missing_java_is_one_sentence_with_advice(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=r"no Java found in JAVA_HOME .*apt-get install openjdk-17"):
        check_java()


def test_an_old_java_is_refused_by_its_version(monkeypatch, tmp_path):
    fake_java(tmp_path, 'java version "1.8.0_392"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=r"is Java 8\. Spark needs Java 17"):
        check_java()


def test_spark_3_runs_on_java_11_and_spark_4_does_not(monkeypatch, tmp_path):
    java = fake_java(tmp_path, 'openjdk version "11.0.13" 2021-10-19')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(__version__="3.5.7"))
    assert check_java() == java
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(__version__="4.0.0"))
    with pytest.raises(SetupError, match=r"is Java 11\. Spark needs Java 17"):
        check_java()


def test_a_broken_java_is_said_to_be_broken(monkeypatch, tmp_path):
    fake_java(tmp_path, "crash", status=1)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match="does not run"):
        check_java()
