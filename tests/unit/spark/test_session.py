"""What is known of a session without starting one."""

import os
import sys
from types import SimpleNamespace

import pytest

from arroyo_core.cli import exits
from arroyo_core.errors import SetupError
from arroyo_core.spark import session as session_module
from arroyo_core.spark.daemon import MODULE
from arroyo_core.spark.session import (
    LOCAL_ADDRESS_VARIABLE,
    SERIAL_THREADS,
    is_one_machine,
    java_options,
    keep_pages_local,
    start_spark,
)
from arroyo_core.spark.shuffles import session_of
from arroyo_core.spark.target import GATEWAY_VARIABLE, choose_target


def session(module, master):
    context = SimpleNamespace(master=master)
    return type("SparkSession", (), {"__module__": module, "sparkContext": context})()


@pytest.mark.parametrize(
    ("module", "master", "expected"),
    [
        ("pyspark.sql.session", "local[2,4]", True),
        ("pyspark.sql.session", "spark://host:7077", False),
        # The master is the server's: its machine need not be this one.
        ("pyspark.sql.connect.session", "local[2,4]", False),
    ],
)
def test_only_a_local_master_of_the_drivers_own_runs_tasks_on_this_machine(module, master, expected):
    assert is_one_machine(session(module, master)) is expected


@pytest.mark.parametrize(
    ("master", "reason", "code"),
    [
        ("spark://127.0.0.1:1", "Connection refused", exits.FAILURE),
        ("spark://127.0.0.1:1,127.0.0.1:2", "Connection refused", exits.FAILURE),
        ("spark://127.0.0.1:port", "port", exits.MISTAKE),
    ],
)
def test_a_master_that_is_not_there_is_told_before_spark_tries_for_a_minute(master, reason, code):
    with pytest.raises(SetupError, match=rf"the Spark master at {master} cannot be reached: .*{reason}") as raised:
        start_spark("job", master=master)
    assert exits.exit_code(raised.value) == code


@pytest.mark.parametrize(
    ("master", "is_small"),
    [
        ("local", True),
        (f"local[{SERIAL_THREADS},4]", True),
        (f"local[{SERIAL_THREADS + 1}]", False),
        # Its tasks run elsewhere.
        ("spark://host:7077", False),
    ],
)
def test_the_heap_is_small_where_few_tasks_share_the_drivers_jvm(monkeypatch, master, is_small):
    monkeypatch.setattr("os.cpu_count", lambda: SERIAL_THREADS + 1)
    assert ("-Xms48m" in java_options(master)) is is_small


def test_the_heap_is_small_on_few_cores_however_many_tasks_share_them(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: SERIAL_THREADS)
    assert "-Xms48m" in java_options("local[40,4]")


def test_a_star_stands_for_the_cores_of_this_machine(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: SERIAL_THREADS + 1)
    assert "-Xms48m" not in java_options("local[*,4]")
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert "-Xms48m" in java_options("local[*,4]")


def settings_for(**given):
    target = choose_target(None, {}, given=given, source="x", environment={})
    return session_module._settings("job", target, is_quiet=True)


def test_what_is_set_outside_wins_over_what_we_would_choose():
    ours = settings_for()
    assert ours["spark.serializer"].endswith("KryoSerializer")
    assert ours["spark.app.name"] == "arroyo job"
    given = {
        "spark.serializer": "org.apache.spark.serializer.JavaSerializer",
        "spark.driver.host": "10.0.0.1",
        "spark.driver.extraJavaOptions": "-Xss4m",
        "spark.app.name": "nightly",
    }
    kept = settings_for(**given)
    # The JVM has the others by itself; the name is needed.
    assert given.keys() & kept.keys() == {"spark.app.name"}
    assert kept["spark.app.name"] == "nightly"
    assert ours.keys() - kept.keys() == given.keys() - {"spark.app.name"}


def test_a_jvm_of_spark_submit_gets_no_options_any_more():
    target = choose_target("local[2]", {}, given={}, source="x", environment={GATEWAY_VARIABLE: "1"})
    assert "spark.driver.extraJavaOptions" not in session_module._settings("job", target, is_quiet=True)


def test_the_thin_client_says_what_it_cannot_do(monkeypatch):
    found = {"pyspark.core": None, "pyspark.context": None}
    monkeypatch.setattr(session_module, "find_spec", lambda name: found[name])
    with pytest.raises(SetupError, match=r"pyspark-client, which only reaches Spark Connect.*on local\[2\]: give"):
        start_spark("job", master="local[2]")


def test_spark_is_not_started_where_pyspark_is_missing(monkeypatch):
    monkeypatch.setattr(session_module, "active_spark", lambda: None)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(SetupError, match="this Python has no pyspark"):
        start_spark("job", master="local[2]")


def test_a_session_of_spark_connect_needs_no_context(monkeypatch):
    # As with the thin client, which has none to import.
    monkeypatch.setitem(sys.modules, "pyspark", None)
    connect = session("pyspark.sql.connect.session", "")
    assert session_of(connect) is connect


def test_another_master_than_that_of_the_active_spark_is_refused(monkeypatch):
    active = session("pyspark.sql.session", "local[2,4]")
    monkeypatch.setattr(session_module, "active_spark", lambda: active)
    assert start_spark("job") is active
    assert start_spark("job", master="local[2]") is active
    with pytest.raises(SetupError, match=r"has a Spark on local\[2,4\] already, and spark://h:1 cannot be started"):
        start_spark("job", master="spark://h:1")


def test_a_python_for_the_driver_comes_too_late(caplog):
    session_module._check_driver_python({"spark.pyspark.driver.python": sys.executable})
    assert not caplog.records
    session_module._check_driver_python({"spark.pyspark.driver.python": "/bin/sh"})
    assert "spark.pyspark.driver.python=/bin/sh has no effect here" in caplog.text
    assert "/bin/sh -m arroyo_core run" in caplog.text


@pytest.mark.parametrize(
    ("master", "conf", "environment", "address"),
    [
        ("local[2]", {}, {}, "127.0.0.1"),
        ("local[2]", {}, {"SPARK_LOCAL_IP": "10.0.0.5"}, "10.0.0.5"),
        ("local[2]", {"spark.driver.bindAddress": "0.0.0.0"}, {}, None),
        # Executors know the driver by that address.
        ("spark://host:7077", {}, {}, None),
        ("local[2]", {}, {GATEWAY_VARIABLE: "1"}, None),
    ],
)
def test_pages_of_a_local_spark_are_for_this_machine_unless_told_otherwise(
    monkeypatch, master, conf, environment, address
):
    monkeypatch.setattr(os, "environ", dict(environment))
    target = choose_target(master, conf, given={}, source="", environment=environment)
    keep_pages_local(target, conf)
    assert os.environ.get(LOCAL_ADDRESS_VARIABLE) == address


@pytest.mark.parametrize(
    ("master", "settings", "is_ours"),
    [
        ("local[2]", {}, True),
        ("local[2]", {"spark.io.encryption.enabled": "true"}, True),
        ("local[2]", {"spark.python.unix.domain.socket.dir": "/run/spark"}, False),
        ("spark://host:7077", {"spark.python.daemon.module": MODULE}, True),
        # Executors of another machine would look for the driver's folder.
        ("spark://host:7077", {}, False),
        ("spark://host:7077", {"spark.python.daemon.module": MODULE, "spark.io.encryption.enabled": "true"}, False),
        ("spark://host:7077", {"spark.python.daemon.module": MODULE, "spark.python.use.daemon": "false"}, False),
    ],
)
def test_sockets_are_in_a_folder_of_ours_where_no_executor_needs_it(master, settings, is_ours):
    target = choose_target(master, {}, given={}, source="", environment={})
    assert session_module._has_own_sockets(target, settings) is is_ours


def test_what_was_set_outside_wins_over_what_keeps_others_out():
    given = {"spark.authenticate": "false", "spark.ui.killEnabled": "true"}
    target = choose_target("local[2]", {}, given=given, source="", environment={GATEWAY_VARIABLE: "1"})
    assert not given.keys() & session_module._settings("job", target, is_quiet=True).keys()
    target = choose_target("local[2]", {}, given={}, source="", environment={GATEWAY_VARIABLE: "1"})
    assert session_module._settings("job", target, is_quiet=True)["spark.authenticate"] == "true"
    target = choose_target("spark://host:7077", {}, given={}, source="", environment={GATEWAY_VARIABLE: "1"})
    assert "spark.authenticate" not in session_module._settings("job", target, is_quiet=True)
