"""A few pipelines for a short time: what is done to some harms no other, and no row is lost; times are not judged."""

from __future__ import annotations

import os

import pytest

from ..soak.samples import DAEMON, DRIVER, JVM, WORKER
from .many import run_many
from .memory import memory_by_kind
from .report import report

SECONDS = int(os.environ.get("MANY_SECONDS") or 20)
PIPELINES = 4


@pytest.mark.timeout(900 + SECONDS)
def test_a_killed_worker_a_failing_and_a_stopped_pipeline_harm_no_other(tmp_path):
    outcome = run_many(tmp_path / "run", count=PIPELINES, duration_s=SECONDS, interval="1s", sample_s=1.0)
    print(report([outcome]))
    assert outcome.problems() == []
    assert len(outcome.faults) == 3
    memory = memory_by_kind(outcome.late_looks)
    assert all(memory[kind] > 0 for kind in (DRIVER, JVM, DAEMON, WORKER))
    # Each process serves all of them: one driver, one JVM, and about as many workers as tasks run at once.
    most = {kind: max(look.processes[kind] for look in outcome.looks) for kind in (DRIVER, JVM, WORKER)}
    assert (most[DRIVER], most[JVM]) == (1, 1)
    assert PIPELINES <= most[WORKER] <= 2 * PIPELINES
