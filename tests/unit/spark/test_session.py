"""What is known of a session without starting one."""

from types import SimpleNamespace

import pytest

from arroyo_core.errors import SetupError
from arroyo_core.spark.session import SERIAL_THREADS, is_one_machine, java_options, start_spark


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
    ("master", "reason"),
    [
        ("spark://127.0.0.1:1", "Connection refused"),
        ("spark://127.0.0.1:1,127.0.0.1:2", "Connection refused"),
        ("spark://127.0.0.1:port", "port"),
    ],
)
def test_a_master_that_is_not_there_is_told_before_spark_tries_for_a_minute(master, reason):
    with pytest.raises(SetupError, match=rf"the Spark master at {master} cannot be reached: .*{reason}"):
        start_spark("job", master=master)


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
def test_the_heap_is_small_where_few_tasks_share_the_drivers_jvm(master, is_small):
    assert ("-Xms48m" in java_options(master)) is is_small


def test_a_star_stands_for_the_cores_of_this_machine(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: SERIAL_THREADS + 1)
    assert "-Xms48m" not in java_options("local[*,4]")
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert "-Xms48m" in java_options("local[*,4]")
