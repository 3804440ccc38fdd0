"""How settings reach a JVM without being shown, and where sockets are."""

import os
import tempfile
from pathlib import Path

import pytest

from arroyo_core.local_folders import make_socket_folder
from arroyo_core.spark.launch import settings_file, write_properties
from arroyo_core.spark.target import read_properties, read_submit_args

VARIABLE = "PYSPARK_SUBMIT_ARGS"


@pytest.fixture(autouse=True)
def defaults(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path / "spark-defaults.conf"


def named_file():
    words = os.environ[VARIABLE].split()
    return Path(words[words.index("--properties-file") + 1])


def test_settings_are_in_a_file_of_this_user_that_goes():
    with settings_file({"spark.secret": "hush"}):
        file = named_file()
        assert "hush" not in os.environ[VARIABLE]
        assert read_submit_args(os.environ[VARIABLE]) == {"spark.secret": "hush"}
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert not file.parent.exists()
    assert VARIABLE not in os.environ


def test_the_file_goes_also_where_spark_does_not_start():
    start = settings_file({})
    start.__enter__()
    file = named_file()
    assert not start.__exit__(OSError, OSError("no Java"), None)
    assert not file.parent.exists()


def test_settings_of_spark_defaults_count_where_nobody_gave_others(defaults):
    defaults.write_text("spark.a 1\nspark.b = 2\n")
    with settings_file({"spark.b": "3"}):
        assert read_submit_args(os.environ[VARIABLE]) == {"spark.a": "1", "spark.b": "3"}


def test_what_the_variable_gives_wins_and_is_not_shown_either(defaults, monkeypatch, tmp_path):
    defaults.write_text("spark.a 1\n")
    given = tmp_path / "given.conf"
    given.write_text("spark.b 2\nspark.c 2\n")
    arguments = f"--jars x.jar --properties-file {given} --conf spark.d='a b' -c spark.e=5 pyspark-shell --conf rest"
    monkeypatch.setenv(VARIABLE, arguments)
    with settings_file({"spark.c": "3", "spark.d": "3"}):
        told = os.environ[VARIABLE]
        assert told.endswith("--jars x.jar pyspark-shell --conf rest")
        found = read_properties(named_file().read_text())
    # As before, a file of one's own stands for `spark-defaults.conf`.
    assert found == {"spark.b": "2", "spark.c": "3", "spark.d": "a b", "spark.e": "5"}
    assert os.environ[VARIABLE] == arguments


@pytest.mark.parametrize(
    ("value", "written"),
    [("plain=x:#!", "plain=x:#!"), ("a\\b\nc\td", "a\\\\b\\nc\\td"), ("  x", "\\  x"), ("straße", "straße")],
)
def test_values_are_written_as_java_reads_them(value, written):
    assert write_properties({"spark.k": value}) == f"spark.k={written}\n"


def test_a_folder_for_sockets_has_a_path_that_the_kernel_takes(monkeypatch, tmp_path):
    folder = make_socket_folder()
    assert folder.parent == Path(tempfile.gettempdir())
    folder.rmdir()
    deep = tmp_path / ("x" * 80)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    folder = make_socket_folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(str(folder / f".{'u' * 36}.sock")) < 104
    assert not list(deep.iterdir())
    folder.rmdir()
