"""What a Spark is told about what its executors get, by what kind of Spark it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from arroyo_core.errors import SetupError
from arroyo_core.spark.missing import explain_missing
from arroyo_core.spark.provisions import ENVIRONMENT_PYTHON, Provision, provide, provided_settings

WHEELS = Provision(asked_by="--ship wheels", packages=Path("/cache/w.zip"))
ENV = Provision(asked_by="--ship env", environment=Path("/cache/e.tar.gz"))


def test_packages_are_unpacked_and_imported_before_those_of_executors():
    assert provided_settings(WHEELS, {}, {}) == {
        "spark.archives": "file:///cache/w.zip#arroyo_packages",
        "spark.executorEnv.PYTHONPATH": "./arroyo_packages",
    }


def test_an_environment_brings_the_python_of_workers():
    assert provided_settings(ENV, {}, {"spark.pyspark.python": "/usr/bin/python3"}) == {
        "spark.archives": "file:///cache/e.tar.gz#arroyo_environment",
        "spark.pyspark.python": ENVIRONMENT_PYTHON,
    }


def test_archives_and_paths_of_others_stay():
    given = {"spark.archives": "hdfs:///model.zip#model", "spark.executorEnv.PYTHONPATH": "/opt/given"}
    settings = provided_settings(WHEELS, {"spark.executorEnv.PYTHONPATH": "/opt/asked"}, given)
    assert settings == {
        "spark.archives": "hdfs:///model.zip#model,file:///cache/w.zip#arroyo_packages",
        "spark.executorEnv.PYTHONPATH": "./arroyo_packages:/opt/asked",
    }


def test_an_environment_and_another_python_are_refused():
    with pytest.raises(SetupError, match=r"--ship env brings a Python, .* names another"):
        provided_settings(ENV, {"spark.pyspark.python": "/p"}, {})
    assert provided_settings(ENV, {"spark.pyspark.python": ENVIRONMENT_PYTHON}, {})


def test_a_provision_is_one_of_both():
    for paths in ({}, {"packages": Path("/w.zip"), "environment": Path("/e.zip")}):
        with pytest.raises(ValueError, match="either packages or an environment"):
            Provision(asked_by="x", **paths)


class Told:
    """Stands for a context, or for a session of Spark Connect."""

    def __init__(self):
        self.calls = []
        self.conf = self

    def set(self, key, value):
        self.calls.append(("set", key, value))

    def addPyFile(self, path):  # noqa: N802
        self.calls.append(("addPyFile", path))

    def addArtifacts(self, path, **kind):  # noqa: N802
        self.calls.append(("addArtifacts", path, kind))


def test_a_context_that_runs_takes_packages_only():
    context = Told()
    provide(WHEELS, context, is_connect=False)
    assert context.calls == [("addPyFile", "/cache/w.zip")]
    with pytest.raises(SetupError, match="--ship env needs a Spark that it starts, and this process has one already"):
        provide(ENV, context, is_connect=False)


def test_a_session_of_connect_takes_either():
    session = Told()
    provide(WHEELS, session, is_connect=True)
    provide(ENV, session, is_connect=True)
    assert session.calls == [
        ("addArtifacts", "/cache/w.zip", {"pyfile": True}),
        ("addArtifacts", "/cache/e.tar.gz#arroyo_environment", {"archive": True}),
        ("set", "spark.sql.execution.pyspark.python", ENVIRONMENT_PYTHON),
    ]


def test_what_the_launcher_of_an_environment_says_is_shown():
    text = (
        "Lost task 0.3 in stage 0.0 (TID 7) (10.0.0.5 executor 1): org.apache.spark.SparkException: \n"
        "Error from python worker:\n  arroyo-environment: this machine has no /p, which the environment needs\n"
        "PYTHONPATH was:\n  /x"
    )
    said = str(explain_missing(text))
    assert said.startswith("executors cannot start Python on 10.0.0.5: this machine has no /p, which the environment")
