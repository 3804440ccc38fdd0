"""Whole jobs whose checkpoints are sealed."""

import pytest

from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.runtime import assembly
from arroyo_core.runtime.events import Committed
from arroyo_core.state import paths
from arroyo_core.state.envelope import seal
from arroyo_core.state.failures import SealError
from arroyo_core.state.seals import KEY_VARIABLE, SealKey, Seals

KEY = "k" * 32
NODES = [
    {"id": "in", "operator": "test.rows", "config": {"count": 60}},
    {"id": "totals", "operator": "test.totals", "inputs": ["in"]},
    {"id": "out", "operator": "test.sink", "inputs": ["totals"]},
]
CHECKPOINT = {"interval": "1h", "rows": 20}


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, KEY)


def test_a_sealed_job_goes_on_where_it_was(lab):
    lab.run_until(lab.job(NODES, checkpoint=CHECKPOINT), Committed, 1)
    lab.job(NODES, checkpoint=CHECKPOINT).run()
    epochs, rows = [epoch for epoch, _ in lab.trace.committed], lab.trace.rows
    lab.trace.committed.clear()
    lab.job(NODES, name="whole", checkpoint=CHECKPOINT).run()
    assert sorted(map(str, lab.trace.rows)) == sorted(map(str, rows))
    assert epochs == sorted(set(epochs))


def test_tasks_are_told_to_verify_whole_files(lab, monkeypatch):
    told = []
    opener = assembly.TableOpener
    monkeypatch.setattr(
        assembly,
        "TableOpener",
        lambda *args, **settings: told.append(settings["is_sealed"]) or opener(*args, **settings),
    )
    lab.job(NODES, checkpoint=CHECKPOINT).run()
    assert set(told) == {True}
    monkeypatch.delenv(KEY_VARIABLE)
    told.clear()
    lab.job(NODES, name="other", checkpoint=CHECKPOINT).run()
    assert set(told) == {False}


def test_forged_commit_data_is_not_committed(lab, tmp_path):
    """As if somebody had put another file to publish into the checkpoint of a driver that died before its commit."""
    lab.run_until(lab.job(NODES, checkpoint=CHECKPOINT), Committed, 1)
    name = paths.checkpoint_metadata("lab", 1)
    path = tmp_path / name
    metadata = Seals([SealKey(KEY.encode())]).unseal(path.read_bytes(), CheckpointMetadata, path=name, name=name)
    for operator in metadata.operators:
        for table in operator.table_checkpoint_metadata.values():
            for subtask in table.global_keyed.commit_data_by_subtask:
                table.global_keyed.commit_data_by_subtask[subtask] = b"forged"
    path.write_bytes(seal(metadata))
    path.with_name("committed.marker").unlink(missing_ok=True)
    before = len(lab.trace.committed)
    with pytest.raises(SealError, match="has no seal"):
        lab.job(NODES, checkpoint=CHECKPOINT).run()
    assert len(lab.trace.committed) == before
