"""A short soak: the tool works, the job loses nothing, and what must never grow does not; times are not judged."""

from __future__ import annotations

import json
import os
from xml.etree import ElementTree

import pytest

from .job import INTERVAL_MS
from .soak import soak

SECONDS = int(os.environ.get("SOAK_SECONDS") or 30)

#: What is so within seconds; what fills up more slowly, only `make soak` shows.
FLAT = ("descriptors: ", "number: ")
#: These go up and down with every collection of garbage, of which there are few in a short run.
BOUNDED = ("files: state", "files: staged", "bytes of state")


@pytest.mark.timeout(600 + SECONDS)
def test_a_short_soak_keeps_its_rows_and_its_counts(tmp_path):
    outcome = soak(tmp_path / "run", duration_s=SECONDS, sample_s=1.0)
    outcome.save(tmp_path / "soak.json", tmp_path / "soak.svg")
    print(outcome.report())
    assert outcome.problems() == []
    # On a busy machine epochs take longer than they should.
    assert len(outcome.epochs) > SECONDS * 1000 / INTERVAL_MS / 10
    changes = {change.measure.name: change for change in outcome.changes()}
    assert {"memory: driver", "memory: JVM", "memory: Python daemon", "memory: Python workers"} <= set(changes)
    assert all(changes[f"memory: {kind}"].first > 0 for kind in ("driver", "JVM", "Python daemon", "Python workers"))
    assert changes["files: state"].first > 0
    assert [name for name in outcome.grown() if name.startswith(FLAT)] == []
    assert [name for name in BOUNDED if changes[name].last > 2 * changes[name].first + 20] == []
    assert len(json.loads((tmp_path / "soak.json").read_text())["samples"]) == len(outcome.samples) > SECONDS // 3
    ElementTree.parse(tmp_path / "soak.svg")
