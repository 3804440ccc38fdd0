"""A replay dies at every call to storage, one run each; the next one leaves every row replayed exactly once."""

from __future__ import annotations

import io
import json
import os
from collections import Counter

import pyarrow.parquet as pq
import pytest
from arroyo_dlq.claims import read_replays
from arroyo_dlq.replay import Replayer, Selection
from arroyo_testing.crash_filesystem import running
from arroyo_testing.lanes import InlineLanes
from arroyo_testing.machine import Crash, CrashPoint, Disk, Life, Mode

from arroyo_core.pipeline import plan_text
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.job import Job
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.state import get_storage_provider

ROOT = "lab"
URL = f"crash-object://{ROOT}"
NUMBERS = [1, 0, 2, 0, 3, 0]
SELECTION = Selection(pipeline="shares")
TRUTH = Counter({(place, 12 // number if number else 0): 1 for place, number in enumerate(NUMBERS)})


def plan(share: str):
    document = {
        "name": "shares",
        "checkpoint": {"url": f"{URL}/state", "interval": "1h", "rows": 2},
        "nodes": [
            {
                "id": "orders",
                "operator": "filesystem.source",
                "config": {"path": f"{URL}/in", "schema": {"n": "int64", "place": "int64"}},
            },
            {
                "id": "shared",
                "operator": "std.project",
                "inputs": ["orders"],
                "config": {"keep": ["place"], "expressions": {"share": share}, "on_error": "dead_letter"},
            },
            {"id": "out", "operator": "filesystem.sink", "inputs": ["shared"], "config": {"path": f"{URL}/out"}},
            {
                "id": "dead",
                "operator": "filesystem.sink",
                "inputs": ["shared.errors"],
                "config": {"path": f"{URL}/dead"},
            },
        ],
    }
    return plan_text(json.dumps(document), plugins=installed_plugins(), environment=os.environ)


def run(plan, start=None):
    plugins = installed_plugins()
    url = plan.checkpoint.url
    return Job(
        plan, LocalExecutor(plugins), plugins=plugins, storage_url=url, start=start, lanes=InlineLanes(), max_restarts=0
    ).run()


def replay(disk: Disk, life: Life) -> int:
    """One process that replays, from its start to its end; the number of replays it finished."""
    with running(disk, life):
        fixed = plan("CASE WHEN n = 0 THEN 0 ELSE 12 / n END")
        replayer = Replayer(
            storage=get_storage_provider(f"{URL}/dead"), plan=fixed, plugins=installed_plugins(), run=run
        )
        return len(list(replayer.replay(SELECTION)))


def output(disk: Disk) -> Counter[tuple[int, int]]:
    """What readers of the sink's folder see."""
    rows: Counter[tuple[int, int]] = Counter()
    for name, data in disk.files.items():
        if name.startswith(f"{ROOT}/out/part-"):
            rows.update((row["place"], row["share"]) for row in pq.read_table(io.BytesIO(data)).to_pylist())
    return rows


@pytest.fixture(scope="module")
def disk():
    """The store after the pipeline ran, with three dead letters."""
    lines = [json.dumps({"n": number, "place": place}) for place, number in enumerate(NUMBERS)]
    disk = Disk({f"{ROOT}/in/orders.json": "\n".join(lines).encode()}, {ROOT, f"{ROOT}/in"})
    with running(disk, Life()):
        run(plan("12 / n"))
    return disk


@pytest.fixture(scope="module")
def whole(disk):
    """A replay that nothing disturbs, and the store as a crash at each of its calls would leave it."""
    done = disk.copy()
    life = Life(watch=done)
    assert replay(done, life) == 1
    assert output(done) == TRUTH
    return life


def test_the_replay_does_all_that_a_crash_could_disturb(whole):
    changed = [call.path for call in whole.calls if call.is_mutation]
    assert {"create", "copy", "write", "delete"} <= {call.kind for call in whole.calls}
    for name in ("claim.json", "rows/part-00000.parquet", "2/checkpoint.metadata", "2/committed.marker", "done.json"):
        assert any(path.endswith(name) for path in changed), name


def test_a_crash_at_any_call_neither_loses_nor_repeats_a_row(disk, whole):
    before = output(disk)
    # What a new process does depends on the store alone: crashes that leave the same need one recovery.
    points = {frozenset(wreck.files.items()): (point, wreck) for point, wreck in whole.wrecks}
    for number, (point, wreck) in enumerate(points.values()):
        seen = output(wreck)
        assert before <= seen <= TRUTH, point
        left = wreck.copy()
        replay(left, Life())
        assert output(left) == TRUTH, point
        with running(left, Life()):
            found = read_replays(get_storage_provider(f"{URL}/dead"))
            assert found.broken_off == [], point
        if number % 10 == 0:
            assert replay(left, Life()) == 0, point
            assert output(left) == TRUTH, point
    print(f"\n{len(whole.wrecks)} crash points, which leave {len(points)} different stores, one recovery each")
    assert len(whole.wrecks) > 100


def test_a_crash_while_going_on_after_a_crash_changes_nothing(disk, whole):
    tried = 0
    for number, (point, wreck) in enumerate(whole.wrecks[::9]):
        left = wreck.copy()
        life = Life(CrashPoint(5 + 7 * number % 60, Mode.AFTER))
        try:
            replay(left, life)
        except Crash:
            tried += 1
        except Exception:
            assert life.is_dead, point
            tried += 1
        replay(left, Life())
        assert output(left) == TRUTH, point
    assert tried > 5
