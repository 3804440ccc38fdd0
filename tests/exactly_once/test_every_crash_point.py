"""A whole pipeline dies at every call to storage, one run each; each time it recovers to exactly the same result."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
from arroyo_testing.machine import Mode

from .support.crash_rounds import Laboratory, Order, run_rounds, share_rounds
from .support.local_rounds import LocalLaboratory, run_local_rounds

#: `EXACTLY_ONCE_SEED=n` repeats a failed round of double crashes, and `..._ROUNDS` makes more of them.
SEED = int(os.environ.get("EXACTLY_ONCE_SEED", "1"))
ROUNDS = int(os.environ.get("EXACTLY_ONCE_ROUNDS", "100"))
#: So many of the stores that a crash of live workers leaves are recovered from.
LIVE_POINTS = int(os.environ.get("EXACTLY_ONCE_LIVE_POINTS", "60"))


@pytest.fixture(scope="module")
def laboratory():
    return Laboratory("crash-object", Order.RUN_FIRST)


def test_the_pipeline_does_all_that_a_crash_could_disturb(laboratory):
    kinds = Counter(call.kind for call in laboratory.whole.calls)
    print(f"\n{len(laboratory.whole.calls)} calls to storage: {dict(kinds)}")
    assert set(kinds) == {"stat", "list", "find", "read", "write", "create", "copy", "delete"}
    deleted = [call.path for call in laboratory.whole.calls if call.kind == "delete"]
    assert any(path.endswith("checkpoint.metadata") for path in deleted), "no epoch was collected"
    assert any(call.path.endswith("5/committed.marker") for call in laboratory.whole.calls), "fewer than five epochs"
    tables = laboratory.truth.tables
    written = Counter(str(call) for call in laboratory.whole.calls if "/5/table-windows-" in call.path)
    assert written["write lab/state/exact/checkpoints/5/table-windows-seen-1-*.parquet"] == 2, "nothing was compacted"
    assert any(rows for name, rows in tables.items() if name.endswith("windows.open"))
    assert any(rows for name, rows in tables.items() if name.endswith("windows.seen"))
    assert laboratory.truth.output.total() == 20
    assert laboratory.truth.bad_lines.total() == 2


def test_two_runs_make_the_same_calls_in_the_same_order(laboratory):
    again = Laboratory("crash-object", Order.RUN_FIRST)
    assert [str(call) for call in again.whole.calls] == [str(call) for call in laboratory.whole.calls]


@pytest.mark.timeout(900)
def test_a_crash_at_any_call_to_storage_changes_nothing(laboratory):
    points = laboratory.different_points()
    rounds = share_rounds(run_rounds, "crash-object", Order.RUN_FIRST, "crash_point", numbers=points)
    print(
        f"\n{len(laboratory.wrecks)} crash points, which leave {len(rounds)} different stores, one recovery each; "
        "each epoch runs before the one before it is published"
    )
    assert [found for found in rounds if found.problem] == []
    assert len(laboratory.wrecks) > 500
    assert len(rounds) == len(points) > 180


@pytest.mark.timeout(900)
def test_a_crash_after_any_decision_changes_nothing_where_epochs_do_not_overlap():
    laboratory = Laboratory("crash-object", Order.PUBLISH_FIRST)
    calls = laboratory.whole.calls
    # Writes are the same in any order; what differs is what is there when something is decided or deleted.
    points = laboratory.different_points(
        lambda point: point.mode is Mode.AFTER and calls[point.call - 1].kind in ("create", "copy", "delete")
    )
    rounds = share_rounds(run_rounds, "crash-object", Order.PUBLISH_FIRST, "crash_point", numbers=points)
    print(f"\n{len(rounds)} crash points, one recovery each; each epoch is published before the next one runs")
    assert [found for found in rounds if found.problem] == []
    assert len(rounds) > 50


@pytest.mark.timeout(900)
def test_a_crash_at_any_call_of_live_workers_whose_epochs_overlap_changes_nothing():
    """Threads decide the order of calls, so that each run of this test has points of its own."""
    laboratory = Laboratory("crash-object", Order.RUN_FIRST, is_live=True)
    points = laboratory.different_points()
    # Others in the next run.
    chosen = random.Random().sample(points, min(len(points), LIVE_POINTS))
    rounds = [laboratory.crash_point(point) for point in sorted(chosen)]
    print(f"\n{len(rounds)} of {len(points)} different stores that crashes of live workers leave, one recovery each")
    assert [found for found in rounds if found.problem] == []
    assert len(points) > 100


@pytest.mark.timeout(900)
def test_a_crash_at_any_change_of_output_in_folders_changes_nothing():
    laboratory = Laboratory("crash-folder", Order.RUN_FIRST)
    calls = laboratory.whole.calls
    # State is kept as on an object store: the points that differ are those of the sinks.
    points = laboratory.different_points(
        lambda point: (
            calls[point.call - 1].is_mutation and calls[point.call - 1].path.startswith(("lab/out", "lab/bad"))
        )
    )
    rounds = share_rounds(run_rounds, "crash-folder", Order.RUN_FIRST, "crash_point", numbers=points)
    print(f"\n{len(rounds)} different stores with folders that crashes leave, one recovery each")
    assert [found for found in rounds if found.problem] == []
    assert len(rounds) > 70


@pytest.mark.timeout(900)
def test_a_crash_at_any_change_of_output_that_is_held_for_larger_files_changes_nothing():
    laboratory = Laboratory("crash-object", Order.RUN_FIRST, sink={"min_file_size": "1MiB", "max_hold": "1h"})
    calls = laboratory.whole.calls
    points = laboratory.different_points(
        lambda point: calls[point.call - 1].is_mutation and calls[point.call - 1].path.startswith("lab/out")
    )
    rounds = [laboratory.crash_point(point) for point in points]
    print(f"\n{len(rounds)} different stores with rows that are held, one recovery each")
    assert [found for found in rounds if found.problem] == []
    assert laboratory.truth.output.total() == 20
    held = [call for call in calls if "/held/" in call.path]
    assert {call.kind for call in held if call.is_mutation} >= {"write", "delete"}
    assert len(rounds) > 20


@pytest.mark.timeout(900)
def test_a_crash_while_recovering_from_a_crash_changes_nothing():
    rounds = share_rounds(
        run_rounds, "crash-object", Order.RUN_FIRST, "crash_twice", numbers=range(SEED, SEED + ROUNDS)
    )
    print(f"\n{len(rounds)} double crashes; EXACTLY_ONCE_SEED=n EXACTLY_ONCE_ROUNDS=1 repeats the one with seed n")
    assert [found for found in rounds if found.problem] == []


@pytest.mark.timeout(900)
def test_a_crash_at_any_change_of_local_files_changes_nothing():
    laboratory = LocalLaboratory(Order.RUN_FIRST)
    # Data files of state, and folders, are many and alike: some of them stand for all.
    alike = ("table-", "operator-", "events-", "os.mkdir", "os.rmdir")
    points = [
        index
        for index, wreck in enumerate(laboratory.wrecks)
        if index % 12 == 0 or not any(part in wreck.name for part in alike)
    ]
    rounds = share_rounds(run_local_rounds, Order.RUN_FIRST, numbers=points)
    print(f"\n{len(rounds)} of {len(laboratory.wrecks)} crash points on local files, one recovery each")
    assert [found for found in rounds if found.problem] == []
    assert len(rounds) > 80
