"""Which Spark a job runs on: who is heard, and in which order."""

from __future__ import annotations

import sys

import pytest

from arroyo_core.errors import SetupError
from arroyo_core.spark import target
from arroyo_core.spark.target import choose_target, read_properties, read_submit_args, resolve_target

EVERYBODY = {
    "master": "spark://asked:1",
    "conf": {"spark.master": "spark://conf:1"},
    "given": {"spark.master": "spark://given:1"},
    "environment": {"SPARK_REMOTE": "sc://remote:1", "MASTER": "spark://variable:1"},
}


def choose(master=None, conf=None, given=None, environment=None):
    return choose_target(master, conf or {}, given=given or {}, source="spark-submit", environment=environment or {})


@pytest.mark.parametrize(
    ("silent", "expected", "shown"),
    [
        ([], "spark://asked:1", "spark://asked:1"),
        (["master"], "spark://conf:1", "spark://conf:1"),
        (["master", "conf"], "spark://given:1", "spark://given:1, from spark-submit"),
        (["master", "conf", "given"], "sc://remote:1", "sc://remote:1, from SPARK_REMOTE"),
        (["master", "conf", "given", "environment"], "local[*]", "local[*]"),
    ],
)
def test_the_nearest_choice_counts(silent, expected, shown):
    found = choose(**{name: value for name, value in EVERYBODY.items() if name not in silent})
    assert (found.master, str(found)) == (expected, shown)


def test_the_variable_of_pyspark_is_heard():
    assert str(choose(environment={"MASTER": "spark://variable:1"})) == "spark://variable:1, from MASTER"
    assert choose(conf={"spark.remote": "sc://h:1"}).is_connect


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", "local[1,4]"),
        ("local[3]", "local[3,4]"),
        ("local[*]", "local[*,4]"),
        ("local[3,1]", "local[3,1]"),
        ("spark://h:7077", "spark://h:7077"),
    ],
)
def test_tasks_are_tried_again_also_on_one_machine(master, expected):
    assert choose(master).spark_master == expected


def test_the_python_of_workers_is_this_one_unless_somebody_chose_another():
    assert choose().python == sys.executable
    assert choose(environment={"PYSPARK_PYTHON": "/variable"}).python == "/variable"
    given = {"given": {"spark.pyspark.python": "/given"}, "environment": {"PYSPARK_PYTHON": "/variable"}}
    assert choose(**given).python == "/given"
    assert choose(conf={"spark.pyspark.python": "/asked"}, **given).python == "/asked"


def test_an_application_keeps_the_name_that_it_was_given():
    assert choose(given={"spark.app.name": "nightly"}).app_name == "nightly"
    # What spark-submit makes of the file.
    assert choose(given={"spark.app.name": "__main__.py"}).app_name is None
    assert choose().app_name is None


def test_arguments_of_spark_submit_are_read(tmp_path):
    file = tmp_path / "my.conf"
    file.write_text("spark.master spark://file:1\nspark.executor.memory 1g\nspark.eventLog.dir /file\n")
    text = (
        f"--jars a.jar --master spark://h:7077 --conf spark.master=spark://no:1 --conf 'spark.a=b c=d' "
        f"-c spark.executor.memory=8g --properties-file {file} --name=nightly pyspark-shell --master no"
    )
    assert read_submit_args(text) == {
        "spark.master": "spark://h:7077",
        "spark.a": "b c=d",
        "spark.executor.memory": "8g",
        "spark.eventLog.dir": "/file",
        "spark.app.name": "nightly",
    }
    assert read_submit_args("pyspark-shell") == {}
    with pytest.raises(SetupError, match="PYSPARK_SUBMIT_ARGS cannot be read"):
        read_submit_args("--master 'x")


def test_properties_are_read_as_spark_reads_them():
    text = """
# a comment
spark.master            spark://h:7077
spark.executor.memory=8g
spark.a.b : c d
  spark.driver.extraJavaOptions  -XX:+PrintGCDetails -Dkey=value
other.thing 1
spark.nothing
"""
    assert read_properties(text) == {
        "spark.master": "spark://h:7077",
        "spark.executor.memory": "8g",
        "spark.a.b": "c d",
        "spark.driver.extraJavaOptions": "-XX:+PrintGCDetails -Dkey=value",
    }


@pytest.fixture
def conf_folder(tmp_path, monkeypatch):
    for name in ("MASTER", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS", "PYSPARK_PYTHON", target.GATEWAY_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    return tmp_path


def test_the_defaults_of_a_spark_are_heard(conf_folder, monkeypatch):
    assert str(resolve_target()) == "local[*]"
    (conf_folder / "spark-defaults.conf").write_text("spark.master spark://defaults:1\nspark.serializer x\n")
    assert str(resolve_target()) == "spark://defaults:1, from spark-defaults.conf"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master spark://args:1 pyspark-shell")
    found = resolve_target()
    assert str(found) == "spark://args:1, from PYSPARK_SUBMIT_ARGS"
    assert found.given["spark.serializer"] == "x"
    assert resolve_target("local[2]").master == "local[2]"


def test_the_defaults_are_found_below_spark_home(conf_folder, tmp_path, monkeypatch):
    monkeypatch.delenv("SPARK_CONF_DIR")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    (tmp_path / "spark/conf").mkdir(parents=True)
    (tmp_path / "spark/conf/spark-defaults.conf").write_text("spark.master yarn\n")
    assert resolve_target().master == "yarn"
