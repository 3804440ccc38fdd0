"""What differs between releases of Spark, without any."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from arroyo_core.errors import SetupError
from arroyo_core.spark.releases import (
    BATCH_ROWS,
    BatchLimits,
    check_pyspark,
    is_supported,
    loaded,
    partition_keys,
    release_of,
    spark_hash,
)

PIPELINE = """
name: without_spark
nodes:
  - {id: numbers, operator: impulse.source, config: {count: 10}}
  - {id: nowhere, operator: std.blackhole, inputs: [numbers]}
"""


def test_a_python_without_pyspark_is_told_in_a_sentence_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(SetupError, match=r"this Python has no pyspark: pip install 'arroyo-core\[spark\]'") as raised:
        check_pyspark()
    assert "\n" not in str(raised.value)


def test_a_pyspark_that_is_too_old_or_too_new_is_told_with_what_is_allowed(monkeypatch):
    for version in ("3.4.4", "5.0.0"):
        monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(__version__=version))
        with pytest.raises(SetupError, match=rf"pyspark {version}, and pipelines run on <5,>=3.5"):
            check_pyspark()


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("3.4.4", False),
        ("3.5.0", True),
        ("3.5.2-amzn-1", True),
        ("4.0.0+databricks.connect.17.3", True),
        ("4.1.0.dev1", True),
        ("5.0.0", False),
        ("unknown", False),
    ],
)
def test_versions_of_vendors_count_by_their_numbers(version, expected):
    assert is_supported(version) is expected


def test_a_release_is_major_and_minor():
    assert release_of("3.5.2-amzn-1") == (3, 5)
    assert release_of("4.1.0") == (4, 1)
    with pytest.raises(SetupError, match="'main', which is not one"):
        release_of("main")


@pytest.mark.parametrize(
    # What `select hash(n)` gives on Spark.
    ("number", "expected"),
    [(0, 933211791), (1, -559580957), (-1, -1604776387), (42, 29417773), (2147483647, 133916647)],
)
def test_the_hash_of_numbers_is_that_of_spark(number, expected):
    assert spark_hash(number) == expected


@pytest.mark.parametrize("width", [1, 2, 3, 7, 64, 1000])
def test_each_partition_has_a_number_that_leads_to_it(width):
    keys = partition_keys(width)
    assert [spark_hash(key) % width for key in keys] == list(range(width))


class Settings:
    def __init__(self, rows: str) -> None:
        self.rows = rows
        self.conf = self

    def get(self, key: str) -> str:
        assert key == BATCH_ROWS
        return self.rows

    def set(self, key: str, value: str) -> None:
        assert key == BATCH_ROWS
        self.rows = value


def test_batches_are_limited_while_any_epoch_of_the_session_runs():
    limits, session = BatchLimits(), Settings("10000")
    with limits.within(session, (3, 5)):
        assert session.rows == "16"
        with limits.within(session, (3, 5)):
            assert session.rows == "16"
        assert session.rows == "16"
    assert session.rows == "10000"


def test_a_setting_comes_back_after_a_failure_too():
    limits, session = BatchLimits(), Settings("10000")
    with pytest.raises(RuntimeError), limits.within(session, (3, 5)):
        raise RuntimeError
    assert session.rows == "10000"


@pytest.mark.parametrize(("given", "within"), [("8", "8"), ("0", "16"), ("-1", "16")])
def test_a_smaller_limit_stays_and_none_is_one(given, within):
    session = Settings(given)
    with BatchLimits().within(session, (3, 5)):
        assert session.rows == within
    assert session.rows == given


def test_sessions_with_a_limit_in_bytes_are_used_as_they_are():
    session = Settings("10000")
    with BatchLimits().within(session, (4, 0)):
        assert session.rows == "10000"


@pytest.mark.parametrize(
    ("release", "before", "within"),
    [((3, 5), "10000", "512"), ((3, 5), "16", "512"), ((4, 0), "16", "10000"), ((4, 3), "5000", "5000")],
)
def test_an_epoch_that_reads_dataframes_gets_many_rows_in_a_batch(release, before, within):
    session = Settings(before)
    with BatchLimits().within(session, release, has_rows=True):
        assert session.rows == within
    assert session.rows == before


@pytest.mark.parametrize("is_context", [True, False])
def test_what_is_collected_is_read_within_a_context_where_there_is_one(monkeypatch, is_context):
    from contextlib import contextmanager

    import pyspark.util

    def plain(served, deserializer):
        yield from served

    @contextmanager
    def within(served, deserializer):
        yield iter(served)

    monkeypatch.setattr(pyspark.util, "_load_from_socket", within if is_context else plain)
    assert loaded([1, 2], None) == [1, 2]


def without_pyspark(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = "import sys; sys.modules['pyspark'] = None; from arroyo_core.cli.main import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "pipeline.yaml"
    path.write_text(PIPELINE)
    return str(path)


@pytest.mark.parametrize("command", [["validate"], ["plan"], ["run", "--in-process"]])
def test_what_needs_no_spark_works_without_pyspark(file, command):
    done = without_pyspark(command[0], file, *command[1:])
    assert done.returncode == 0, done.stderr


def test_a_run_without_pyspark_ends_with_the_sentence(file):
    done = without_pyspark("run", file)
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "arroyo: pipelines run on Spark, and this Python has no pyspark: pip install 'arroyo-core[spark]', or use the "
        "Python of a platform that has its own"
    )
