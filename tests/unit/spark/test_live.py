"""How live workers are started by a Spark: what its settings ask for, and what becomes of a Spark that is gone."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from arroyo_core.errors import SetupError
from arroyo_core.runtime.live.access import NETWORK_TIMEOUT_SECONDS, Access
from arroyo_core.runtime.live.executor import LiveExecutor
from arroyo_core.runtime.live.wire import Address
from arroyo_core.runtime.live.worker import Ticket
from arroyo_core.spark import execution, live
from arroyo_core.spark import executor as executor_module
from arroyo_core.spark.execution import Execution
from arroyo_core.spark.executor import SparkExecutor, SparkLostError
from arroyo_core.spark.live import SparkLauncher

TICKET = Ticket(Address(path="nowhere"), Access(b"secret"), 2, True)


def context(**settings):
    """A Spark's settings, of which dots are underscores here."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    read = SimpleNamespace(timeStringAsSec=lambda text: int(text.removesuffix("s")))
    util = SimpleNamespace(network=SimpleNamespace(util=SimpleNamespace(JavaUtils=read)))
    jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(spark=util)))
    return SimpleNamespace(_conf=named, getConf=lambda: named, _jvm=jvm)


@pytest.mark.parametrize(
    ("settings", "is_encrypted"),
    [
        ({}, False),
        ({"spark_network_crypto_enabled": "true"}, True),
        ({"spark_ssl_rpc_enabled": "true"}, True),
        ({"spark_authenticate_enableSaslEncryption": "TRUE"}, True),
        ({"spark_network_crypto_enabled": "false"}, False),
        # Files, and pages.
        ({"spark_io_encryption_enabled": "true", "spark_ssl_ui_enabled": "true"}, False),
    ],
)
def test_workers_encrypt_between_machines_where_spark_does(settings, is_encrypted):
    assert SparkLauncher(context(**settings), is_one_machine=False).is_encrypted is is_encrypted
    assert SparkLauncher(context(**settings), is_one_machine=True).is_encrypted is False


def test_a_machine_is_lost_when_spark_would_give_it_up():
    given = SparkLauncher(context(spark_network_timeout="6s"), is_one_machine=False)
    assert given.network_timeout_s == 6
    assert SparkLauncher(context(), is_one_machine=False).network_timeout_s == NETWORK_TIMEOUT_SECONDS


def test_a_spark_that_is_gone_is_not_tried_again(monkeypatch):
    def refuse(*_):
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(live, "SparkStage", refuse)
    with pytest.raises(SparkLostError, match=r"the Spark session is gone .*start the job again"):
        SparkLauncher(context(), is_one_machine=False).start(TICKET, "job")


def planned(width, *, live_slots=None):
    return SimpleNamespace(width=width, live_slots=live_slots or width)


def connect_session():
    """A session of Spark Connect, as far as anybody asks."""
    return type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()


PLACES = [
    (
        connect_session(),
        "the tasks of Spark Connect have no way to this driver",
        "each epoch is a Spark job, as Spark may run on several machines",
    ),
    (
        context(spark_dynamicAllocation_enabled="true"),
        "Spark allocates executors dynamically (spark.dynamicAllocation.enabled)",
        "each epoch is a Spark job: Spark allocates executors dynamically (spark.dynamicAllocation.enabled)",
    ),
    (
        context(),
        "Spark runs 2 tasks at once, and the pipeline has 3 subtasks beside each other",
        "each epoch is a Spark job: Spark runs 2 tasks at once, and the pipeline has 3 subtasks beside each other",
    ),
]


@pytest.mark.parametrize(("spark", "obstacle", "said"), PLACES, ids=["connect", "dynamic allocation", "slots"])
def test_where_live_workers_have_no_place_epochs_are_jobs_or_the_start_is_refused(monkeypatch, spark, obstacle, said):
    # What carries frames through Spark's shuffle asks for a real one.
    monkeypatch.setattr(executor_module, "exchange_for", lambda spark: None)
    if not execution.is_connect(spark):
        spark.master = "local[2]"
    plan = planned(3)
    executor, reason = execution.make_executor(spark, plan, Execution.AUTO)
    assert (type(executor), reason) == (SparkExecutor, said)
    with pytest.raises(SetupError) as refused:
        execution.make_executor(spark, plan, Execution.LIVE)
    assert refused.value.message == f"live workers are not possible here: {obstacle}; use 'execution: auto' or 'jobs'"
    assert type(execution.make_executor(spark, plan, Execution.JOBS)[0]) is SparkExecutor


def test_a_sink_that_commits_by_spark_jobs_needs_a_slot_that_no_worker_keeps():
    spark = context()
    spark.master = "local[2]"
    with pytest.raises(SetupError, match="has 2 subtasks beside each other, and a sink that commits by Spark jobs"):
        execution.make_executor(spark, planned(2, live_slots=3), Execution.LIVE)
    spark.master = "local[3]"
    assert type(execution.make_executor(spark, planned(2, live_slots=3), Execution.LIVE)[0]) is LiveExecutor


def test_dynamic_allocation_that_is_off_is_not_in_the_way():
    spark = context(spark_dynamicAllocation_enabled="false")
    spark.master = "local[3]"
    executor, reason = execution.make_executor(spark, planned(3), Execution.AUTO)
    assert (type(executor), reason) == (LiveExecutor, "")


@pytest.mark.parametrize("is_near", [True, False])
def test_what_encrypts_must_be_installed_where_spark_encrypts_between_machines(monkeypatch, is_near):
    spark = context(spark_network_crypto_enabled="true")
    monkeypatch.setattr(execution, "is_connect", lambda spark: False)
    monkeypatch.setattr(execution, "context_of", lambda spark: spark)
    monkeypatch.setattr(execution, "_slots", lambda context, wanted: wanted)
    monkeypatch.setattr(execution, "find_spec", lambda name: None)
    obstacle = execution._obstacle(spark, planned(2), is_near=is_near)
    if is_near:
        assert obstacle is None
    else:
        assert "pip install 'arroyo-core[encryption]'" in obstacle
