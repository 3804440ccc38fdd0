"""How many tasks several jobs may run at once on this machine."""

from types import SimpleNamespace

import pytest
from arroyo_jobs.shared_spark import shared_master, told_as_jobs

from arroyo_core.errors import SetupError
from arroyo_core.spark.target import choose_target


def target(master=None):
    return choose_target(master, {}, given={}, source="x", environment={})


@pytest.mark.parametrize(
    ("master", "slots", "expected"),
    [
        (None, 20, "local[20]"),
        ("local[*]", 20, "local[20]"),
        (None, 1, "local[3]"),
        ("local[2]", 20, "local[2]"),
        ("spark://host:7077", 20, "spark://host:7077"),
    ],
)
def test_jobs_get_as_many_tasks_as_they_have_unless_somebody_has_chosen(monkeypatch, master, slots, expected):
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    assert shared_master(target(master), slots) == expected


def test_spark_connect_is_refused():
    with pytest.raises(SetupError, match=r"cannot share a session of Spark Connect \(sc://host\)"):
        shared_master(target("sc://host"), 2)


@pytest.mark.parametrize(
    ("executions", "said"),
    [
        (("jobs", "jobs"), ""),
        (
            ("live", "jobs", "auto"),
            "each epoch is a Spark job (p0, p2): live workers would keep the slots of Spark that the other pipelines "
            "need",
        ),
    ],
)
def test_pipelines_that_ask_for_live_workers_are_told_why_there_are_none(executions, said):
    plans = [SimpleNamespace(job_id=f"p{number}", execution=kind) for number, kind in enumerate(executions)]
    assert told_as_jobs(plans) == said
