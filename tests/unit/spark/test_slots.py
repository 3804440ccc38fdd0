"""How many tasks a Spark on this machine runs at once."""

import pytest

from arroyo_core.spark.slots import slots_of


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", 1),
        ("local[4]", 4),
        ("local[4,2]", 4),
        ("local[*,4]", 3),
        ("spark://host:7077", 0),
        ("local-cluster[2,1,512]", 0),
    ],
)
def test_a_local_master_tells_how_many_tasks_it_runs(monkeypatch, master, expected):
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    assert slots_of(master) == expected
