"""A short soak: the tool works, the job loses nothing, and what must never grow does not; times are not judged."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from .soak import soak
from .works import WORKS

SECONDS = int(os.environ.get("SOAK_SECONDS") or 30)

#: What is so within seconds; what fills up more slowly, only `make soak` shows.
FLAT = ("descriptors: ", "number: ")
#: These go up and down with every collection of garbage, of which there are few in a short run: what the epochs need
#: that are kept, with room: 272 files were seen.
BOUNDED = {"files: state": 400, "files: staged": 20, "bytes of state": 1.5}


@pytest.mark.timeout(600 + SECONDS)
def test_a_short_soak_keeps_its_rows_and_its_counts(tmp_path):
    outcome = soak(WORKS["windows"], tmp_path / "run", duration_s=SECONDS, sample_s=1.0)
    outcome.save(tmp_path / "soak.json", tmp_path / "soak.svg")
    print(outcome.report())
    assert outcome.problems() == []
    # On a busy machine epochs take longer than they should.
    assert len(outcome.epochs) > SECONDS * 1000 / WORKS["windows"].interval_ms / 10
    changes = {change.measure.name: change for change in outcome.changes()}
    assert {"memory: driver", "memory: JVM", "memory: Python daemon", "memory: Python workers"} <= set(changes)
    assert all(changes[f"memory: {kind}"].first > 0 for kind in ("driver", "JVM", "Python daemon", "Python workers"))
    assert changes["files: state"].first > 0
    assert [name for name in outcome.grown() if name.startswith(FLAT)] == []
    grown = [name for name in BOUNDED if changes[name].last > 2 * changes[name].first + 20]
    # On a busy machine the first quarter has fewer epochs than are kept.
    assert [name for name in grown if changes[name].last > BOUNDED[name]] == []
    assert len(json.loads((tmp_path / "soak.json").read_text())["samples"]) == len(outcome.samples) > SECONDS // 3
    ElementTree.parse(tmp_path / "soak.svg")


@pytest.mark.timeout(600 + SECONDS)
@pytest.mark.parametrize("name", ["live_slow_sink", "live_hot_key"])
def test_workers_behind_a_fast_source_hold_no_more_than_their_credits_allow(tmp_path, name):
    """For some epochs; ten minutes are `make soak MINUTES=10 JOB=live_slow_sink`."""
    work = replace(WORKS[name], interval_ms=5000)
    outcome = soak(work, tmp_path / "run", duration_s=SECONDS, sample_s=1.0)
    print(outcome.report())
    assert outcome.problems() == []
    assert outcome.epochs
    assert outcome.rows > 0
    if work.is_uneven:
        first, last = outcome.samples[0].worker_cpu_s, outcome.samples[-1].worker_cpu_s
        used = [last[pid] - first[pid] for pid in first]
        assert len(used) == 2
        assert min(used) < max(used) / 2
