"""State: tables, views, and their checkpoints as Parquet on object storage. Needs no Spark."""

from arroyo_core.api.operations import DataOperation, DeleteKey, DeleteTimeKey, DeleteTimeRange, DeleteValue, Insert
from arroyo_core.api.views import Matches
from arroyo_core.errors import StateError
from arroyo_core.proto.state_pb2 import TableConfig
from arroyo_core.state.backend import ParquetBackend, StateBackend
from arroyo_core.state.backing_store import BackingStore
from arroyo_core.state.cache import WarmCache, default_warm_cache
from arroyo_core.state.chunks import cut_rows, large_type, one_chunk, take_in_parts, take_parts
from arroyo_core.state.codec import MigratableState
from arroyo_core.state.column_rules import ColumnOwner, ColumnRules, column_path
from arroyo_core.state.compaction import CompactionPolicy
from arroyo_core.state.config import (
    KEY_HASH_COLUMN,
    OPERATION_COLUMN,
    global_table_config,
    global_table_config_with_version,
    timestamp_table_config,
)
from arroyo_core.state.exclusive import exclusive_fault
from arroyo_core.state.expiring_time_key_map import ExpiringTimeKeyTable
from arroyo_core.state.failures import EpochTakenError, FencedError, IncompatibleCheckpointError
from arroyo_core.state.file_access import default_file_pool
from arroyo_core.state.global_keyed_map import GlobalKeyedTable, GlobalKeyedTableCheckpointer
from arroyo_core.state.global_keyed_view import GlobalKeyedView
from arroyo_core.state.key_views import KeyTimeView, LastKeyValueView
from arroyo_core.state.keys import hash_key
from arroyo_core.state.merge import merge_operator_metadata
from arroyo_core.state.messages import (
    CheckpointMessage,
    CommitData,
    CompactionMessage,
    KeyedData,
    RecordBatchData,
    StateMessage,
    TableData,
    TableMessage,
)
from arroyo_core.state.partitioned import PartitionedKeyedView
from arroyo_core.state.protocol import Resolution, ResolutionKind
from arroyo_core.state.staged import commit_data
from arroyo_core.state.storage import Driver, StorageProvider, StoredFile, get_storage_provider
from arroyo_core.state.storage_kinds import StorageKind
from arroyo_core.state.table import Table, TableCheckpointer, TableOpening
from arroyo_core.state.table_manager import TableManager
from arroyo_core.state.table_types import add_table_type
from arroyo_core.state.time_views import ExpiringTimeKeyView
from arroyo_core.state.transience import backoff_s, is_transient

__all__ = [
    "KEY_HASH_COLUMN",
    "OPERATION_COLUMN",
    "BackingStore",
    "CheckpointMessage",
    "ColumnOwner",
    "ColumnRules",
    "CommitData",
    "CompactionMessage",
    "CompactionPolicy",
    "DataOperation",
    "DeleteKey",
    "DeleteTimeKey",
    "DeleteTimeRange",
    "DeleteValue",
    "Driver",
    "EpochTakenError",
    "ExpiringTimeKeyTable",
    "ExpiringTimeKeyView",
    "FencedError",
    "GlobalKeyedTable",
    "GlobalKeyedTableCheckpointer",
    "GlobalKeyedView",
    "IncompatibleCheckpointError",
    "Insert",
    "KeyTimeView",
    "KeyedData",
    "LastKeyValueView",
    "Matches",
    "MigratableState",
    "ParquetBackend",
    "PartitionedKeyedView",
    "RecordBatchData",
    "Resolution",
    "ResolutionKind",
    "StateBackend",
    "StateError",
    "StateMessage",
    "StorageKind",
    "StorageProvider",
    "StoredFile",
    "Table",
    "TableCheckpointer",
    "TableConfig",
    "TableData",
    "TableManager",
    "TableMessage",
    "TableOpening",
    "WarmCache",
    "add_table_type",
    "backoff_s",
    "column_path",
    "commit_data",
    "cut_rows",
    "default_file_pool",
    "default_warm_cache",
    "exclusive_fault",
    "get_storage_provider",
    "global_table_config",
    "global_table_config_with_version",
    "hash_key",
    "is_transient",
    "large_type",
    "merge_operator_metadata",
    "one_chunk",
    "take_in_parts",
    "take_parts",
    "timestamp_table_config",
]
