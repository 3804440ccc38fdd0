"""What `arroyo_core.state` exports, and the hash of Python keys."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

import arroyo_core.state as facade
from arroyo_core.errors import StateError
from arroyo_core.state import StorageProvider, global_table_config, hash_key
from arroyo_core.state.global_keyed_map import as_json

from .support.state_job import Job

DESIGNED = [
    "BackingStore",
    "ParquetBackend",
    "StateBackend",
    "StateMessage",
    "CheckpointMessage",
    "TableData",
    "DataOperation",
    "global_table_config",
    "global_table_config_with_version",
    "timestamp_table_config",
    "hash_key",
    "get_storage_provider",
    "StorageProvider",
    "TableManager",
    "GlobalKeyedTable",
    "GlobalKeyedView",
    "GlobalKeyedTableCheckpointer",
    "MigratableState",
    "ExpiringTimeKeyTable",
    "StateError",
]


def test_the_facade_has_every_designed_name_and_is_sorted():
    assert set(DESIGNED) <= set(facade.__all__)
    assert facade.__all__ == sorted(facade.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert all(hasattr(facade, name) for name in facade.__all__)
    assert facade.StateBackend is facade.ParquetBackend
    assert facade.ParquetBackend.name() == "parquet"


@pytest.mark.parametrize(
    ("key", "expected"),
    [("a", 1233210646190615606), (("a", 1), 16649622422254271860), (0, 14042462481820308804)],
)
def test_the_hash_of_a_key_is_the_one_in_its_file_and_never_changes(tmp_path, key, expected):
    job = Job(StorageProvider(str(tmp_path)), global_table_config("t", "x"))
    job.resume(1)
    job.managers[0].get_global_keyed_state("t").insert(key, 1)
    job.take(None)
    [path] = tmp_path.rglob("*.parquet")
    assert pq.read_table(path).column("_key_hash").to_pylist() == [hash_key(key)] == [expected]


def test_a_key_that_cannot_be_stored_has_no_hash():
    with pytest.raises(StateError, match="cannot hold the key"):
        hash_key(object())


def test_values_that_json_cannot_say_are_shown_all_the_same():
    import msgspec

    assert as_json(msgspec.msgpack.encode({"a": [1, None]})) == '{"a":[1,null]}'
    assert as_json(msgspec.msgpack.encode({(1, 2): 3})) == "{(1, 2): 3}"
