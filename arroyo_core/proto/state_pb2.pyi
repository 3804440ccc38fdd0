from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TableType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TABLE_TYPE_UNSPECIFIED: _ClassVar[TableType]
    GLOBAL_KEY_VALUE: _ClassVar[TableType]
    EXPIRING_KEYED_TIME_TABLE: _ClassVar[TableType]
TABLE_TYPE_UNSPECIFIED: TableType
GLOBAL_KEY_VALUE: TableType
EXPIRING_KEYED_TIME_TABLE: TableType

class TableConfig(_message.Message):
    __slots__ = ("table_type", "config", "state_version")
    TABLE_TYPE_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    STATE_VERSION_FIELD_NUMBER: _ClassVar[int]
    table_type: TableType
    config: bytes
    state_version: int
    def __init__(self, table_type: _Optional[_Union[TableType, str]] = ..., config: _Optional[bytes] = ..., state_version: _Optional[int] = ...) -> None: ...

class GlobalKeyedTableConfig(_message.Message):
    __slots__ = ("table_name", "description", "uses_two_phase_commit", "partitioned")
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    USES_TWO_PHASE_COMMIT_FIELD_NUMBER: _ClassVar[int]
    PARTITIONED_FIELD_NUMBER: _ClassVar[int]
    table_name: str
    description: str
    uses_two_phase_commit: bool
    partitioned: bool
    def __init__(self, table_name: _Optional[str] = ..., description: _Optional[str] = ..., uses_two_phase_commit: bool = ..., partitioned: bool = ...) -> None: ...

class StateSchema(_message.Message):
    __slots__ = ("arrow_schema", "timestamp_column", "key_columns", "has_keys")
    ARROW_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_COLUMN_FIELD_NUMBER: _ClassVar[int]
    KEY_COLUMNS_FIELD_NUMBER: _ClassVar[int]
    HAS_KEYS_FIELD_NUMBER: _ClassVar[int]
    arrow_schema: bytes
    timestamp_column: str
    key_columns: _containers.RepeatedScalarFieldContainer[str]
    has_keys: bool
    def __init__(self, arrow_schema: _Optional[bytes] = ..., timestamp_column: _Optional[str] = ..., key_columns: _Optional[_Iterable[str]] = ..., has_keys: bool = ...) -> None: ...

class ColumnOwner(_message.Message):
    __slots__ = ("name", "identity")
    NAME_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    name: str
    identity: str
    def __init__(self, name: _Optional[str] = ..., identity: _Optional[str] = ...) -> None: ...

class ColumnRules(_message.Message):
    __slots__ = ("fixed", "owners", "closed")
    class OwnersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: ColumnOwner
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[ColumnOwner, _Mapping]] = ...) -> None: ...
    FIXED_FIELD_NUMBER: _ClassVar[int]
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    fixed: _containers.RepeatedScalarFieldContainer[str]
    owners: _containers.MessageMap[str, ColumnOwner]
    closed: str
    def __init__(self, fixed: _Optional[_Iterable[str]] = ..., owners: _Optional[_Mapping[str, ColumnOwner]] = ..., closed: _Optional[str] = ...) -> None: ...

class ExpiringKeyedTimeTableConfig(_message.Message):
    __slots__ = ("table_name", "description", "retention_us", "generational", "schema", "column_rules")
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    RETENTION_US_FIELD_NUMBER: _ClassVar[int]
    GENERATIONAL_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    COLUMN_RULES_FIELD_NUMBER: _ClassVar[int]
    table_name: str
    description: str
    retention_us: int
    generational: bool
    schema: StateSchema
    column_rules: ColumnRules
    def __init__(self, table_name: _Optional[str] = ..., description: _Optional[str] = ..., retention_us: _Optional[int] = ..., generational: bool = ..., schema: _Optional[_Union[StateSchema, _Mapping]] = ..., column_rules: _Optional[_Union[ColumnRules, _Mapping]] = ...) -> None: ...

class StateFile(_message.Message):
    __slots__ = ("path", "size_bytes", "checksum", "rows", "delete_rows", "epoch", "subtask_index", "min_key_hash", "max_key_hash", "min_timestamp_us", "max_timestamp_us", "compaction_generation", "live_key_start", "live_key_end", "live_from_us", "state_version", "footer_checksum", "memory_bytes", "part", "column_names")
    class ColumnNamesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PATH_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    DELETE_ROWS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SUBTASK_INDEX_FIELD_NUMBER: _ClassVar[int]
    MIN_KEY_HASH_FIELD_NUMBER: _ClassVar[int]
    MAX_KEY_HASH_FIELD_NUMBER: _ClassVar[int]
    MIN_TIMESTAMP_US_FIELD_NUMBER: _ClassVar[int]
    MAX_TIMESTAMP_US_FIELD_NUMBER: _ClassVar[int]
    COMPACTION_GENERATION_FIELD_NUMBER: _ClassVar[int]
    LIVE_KEY_START_FIELD_NUMBER: _ClassVar[int]
    LIVE_KEY_END_FIELD_NUMBER: _ClassVar[int]
    LIVE_FROM_US_FIELD_NUMBER: _ClassVar[int]
    STATE_VERSION_FIELD_NUMBER: _ClassVar[int]
    FOOTER_CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    COLUMN_NAMES_FIELD_NUMBER: _ClassVar[int]
    path: str
    size_bytes: int
    checksum: bytes
    rows: int
    delete_rows: int
    epoch: int
    subtask_index: int
    min_key_hash: int
    max_key_hash: int
    min_timestamp_us: int
    max_timestamp_us: int
    compaction_generation: int
    live_key_start: int
    live_key_end: int
    live_from_us: int
    state_version: int
    footer_checksum: bytes
    memory_bytes: int
    part: int
    column_names: _containers.ScalarMap[str, str]
    def __init__(self, path: _Optional[str] = ..., size_bytes: _Optional[int] = ..., checksum: _Optional[bytes] = ..., rows: _Optional[int] = ..., delete_rows: _Optional[int] = ..., epoch: _Optional[int] = ..., subtask_index: _Optional[int] = ..., min_key_hash: _Optional[int] = ..., max_key_hash: _Optional[int] = ..., min_timestamp_us: _Optional[int] = ..., max_timestamp_us: _Optional[int] = ..., compaction_generation: _Optional[int] = ..., live_key_start: _Optional[int] = ..., live_key_end: _Optional[int] = ..., live_from_us: _Optional[int] = ..., state_version: _Optional[int] = ..., footer_checksum: _Optional[bytes] = ..., memory_bytes: _Optional[int] = ..., part: _Optional[int] = ..., column_names: _Optional[_Mapping[str, str]] = ...) -> None: ...

class StagedFile(_message.Message):
    __slots__ = ("path", "size_bytes", "checksum")
    PATH_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    path: str
    size_bytes: int
    checksum: bytes
    def __init__(self, path: _Optional[str] = ..., size_bytes: _Optional[int] = ..., checksum: _Optional[bytes] = ...) -> None: ...

class GlobalKeyedTableSubtaskCheckpointMetadata(_message.Message):
    __slots__ = ("files", "commit_data", "commit_file")
    FILES_FIELD_NUMBER: _ClassVar[int]
    COMMIT_DATA_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FILE_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[StateFile]
    commit_data: bytes
    commit_file: StagedFile
    def __init__(self, files: _Optional[_Iterable[_Union[StateFile, _Mapping]]] = ..., commit_data: _Optional[bytes] = ..., commit_file: _Optional[_Union[StagedFile, _Mapping]] = ...) -> None: ...

class GlobalKeyedTableTaskCheckpointMetadata(_message.Message):
    __slots__ = ("files", "commit_data_by_subtask", "commit_files_by_subtask")
    class CommitDataBySubtaskEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: bytes
        def __init__(self, key: _Optional[int] = ..., value: _Optional[bytes] = ...) -> None: ...
    class CommitFilesBySubtaskEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: StagedFile
        def __init__(self, key: _Optional[int] = ..., value: _Optional[_Union[StagedFile, _Mapping]] = ...) -> None: ...
    FILES_FIELD_NUMBER: _ClassVar[int]
    COMMIT_DATA_BY_SUBTASK_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FILES_BY_SUBTASK_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[StateFile]
    commit_data_by_subtask: _containers.ScalarMap[int, bytes]
    commit_files_by_subtask: _containers.MessageMap[int, StagedFile]
    def __init__(self, files: _Optional[_Iterable[_Union[StateFile, _Mapping]]] = ..., commit_data_by_subtask: _Optional[_Mapping[int, bytes]] = ..., commit_files_by_subtask: _Optional[_Mapping[int, StagedFile]] = ...) -> None: ...

class ExpiringKeyedTimeTableSubtaskCheckpointMetadata(_message.Message):
    __slots__ = ("files",)
    FILES_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[StateFile]
    def __init__(self, files: _Optional[_Iterable[_Union[StateFile, _Mapping]]] = ...) -> None: ...

class ExpiringKeyedTimeTableCheckpointMetadata(_message.Message):
    __slots__ = ("files",)
    FILES_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[StateFile]
    def __init__(self, files: _Optional[_Iterable[_Union[StateFile, _Mapping]]] = ...) -> None: ...

class TableSubtaskCheckpointMetadata(_message.Message):
    __slots__ = ("subtask_index", "table_type", "global_keyed", "expiring_keyed_time")
    SUBTASK_INDEX_FIELD_NUMBER: _ClassVar[int]
    TABLE_TYPE_FIELD_NUMBER: _ClassVar[int]
    GLOBAL_KEYED_FIELD_NUMBER: _ClassVar[int]
    EXPIRING_KEYED_TIME_FIELD_NUMBER: _ClassVar[int]
    subtask_index: int
    table_type: TableType
    global_keyed: GlobalKeyedTableSubtaskCheckpointMetadata
    expiring_keyed_time: ExpiringKeyedTimeTableSubtaskCheckpointMetadata
    def __init__(self, subtask_index: _Optional[int] = ..., table_type: _Optional[_Union[TableType, str]] = ..., global_keyed: _Optional[_Union[GlobalKeyedTableSubtaskCheckpointMetadata, _Mapping]] = ..., expiring_keyed_time: _Optional[_Union[ExpiringKeyedTimeTableSubtaskCheckpointMetadata, _Mapping]] = ...) -> None: ...

class TableCheckpointMetadata(_message.Message):
    __slots__ = ("table_type", "global_keyed", "expiring_keyed_time")
    TABLE_TYPE_FIELD_NUMBER: _ClassVar[int]
    GLOBAL_KEYED_FIELD_NUMBER: _ClassVar[int]
    EXPIRING_KEYED_TIME_FIELD_NUMBER: _ClassVar[int]
    table_type: TableType
    global_keyed: GlobalKeyedTableTaskCheckpointMetadata
    expiring_keyed_time: ExpiringKeyedTimeTableCheckpointMetadata
    def __init__(self, table_type: _Optional[_Union[TableType, str]] = ..., global_keyed: _Optional[_Union[GlobalKeyedTableTaskCheckpointMetadata, _Mapping]] = ..., expiring_keyed_time: _Optional[_Union[ExpiringKeyedTimeTableCheckpointMetadata, _Mapping]] = ...) -> None: ...

class SubtaskCheckpointMetadata(_message.Message):
    __slots__ = ("job_id", "operator_id", "subtask_index", "parallelism", "epoch", "start_time_us", "finish_time_us", "watermark_us", "bytes", "table_metadata", "table_configs", "then_stop")
    class TableMetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: TableSubtaskCheckpointMetadata
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[TableSubtaskCheckpointMetadata, _Mapping]] = ...) -> None: ...
    class TableConfigsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: TableConfig
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[TableConfig, _Mapping]] = ...) -> None: ...
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_ID_FIELD_NUMBER: _ClassVar[int]
    SUBTASK_INDEX_FIELD_NUMBER: _ClassVar[int]
    PARALLELISM_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    START_TIME_US_FIELD_NUMBER: _ClassVar[int]
    FINISH_TIME_US_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_US_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    TABLE_METADATA_FIELD_NUMBER: _ClassVar[int]
    TABLE_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    THEN_STOP_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    operator_id: str
    subtask_index: int
    parallelism: int
    epoch: int
    start_time_us: int
    finish_time_us: int
    watermark_us: int
    bytes: int
    table_metadata: _containers.MessageMap[str, TableSubtaskCheckpointMetadata]
    table_configs: _containers.MessageMap[str, TableConfig]
    then_stop: bool
    def __init__(self, job_id: _Optional[str] = ..., operator_id: _Optional[str] = ..., subtask_index: _Optional[int] = ..., parallelism: _Optional[int] = ..., epoch: _Optional[int] = ..., start_time_us: _Optional[int] = ..., finish_time_us: _Optional[int] = ..., watermark_us: _Optional[int] = ..., bytes: _Optional[int] = ..., table_metadata: _Optional[_Mapping[str, TableSubtaskCheckpointMetadata]] = ..., table_configs: _Optional[_Mapping[str, TableConfig]] = ..., then_stop: bool = ...) -> None: ...

class OperatorMetadata(_message.Message):
    __slots__ = ("job_id", "operator_id", "epoch", "min_watermark_us", "max_watermark_us", "parallelism")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    MIN_WATERMARK_US_FIELD_NUMBER: _ClassVar[int]
    MAX_WATERMARK_US_FIELD_NUMBER: _ClassVar[int]
    PARALLELISM_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    operator_id: str
    epoch: int
    min_watermark_us: int
    max_watermark_us: int
    parallelism: int
    def __init__(self, job_id: _Optional[str] = ..., operator_id: _Optional[str] = ..., epoch: _Optional[int] = ..., min_watermark_us: _Optional[int] = ..., max_watermark_us: _Optional[int] = ..., parallelism: _Optional[int] = ...) -> None: ...

class OperatorCheckpointMetadata(_message.Message):
    __slots__ = ("operator_metadata", "start_time_us", "finish_time_us", "table_checkpoint_metadata", "table_configs", "needs_commit", "bytes", "subtask_index", "backlog")
    class TableCheckpointMetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: TableCheckpointMetadata
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[TableCheckpointMetadata, _Mapping]] = ...) -> None: ...
    class TableConfigsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: TableConfig
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[TableConfig, _Mapping]] = ...) -> None: ...
    OPERATOR_METADATA_FIELD_NUMBER: _ClassVar[int]
    START_TIME_US_FIELD_NUMBER: _ClassVar[int]
    FINISH_TIME_US_FIELD_NUMBER: _ClassVar[int]
    TABLE_CHECKPOINT_METADATA_FIELD_NUMBER: _ClassVar[int]
    TABLE_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    NEEDS_COMMIT_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SUBTASK_INDEX_FIELD_NUMBER: _ClassVar[int]
    BACKLOG_FIELD_NUMBER: _ClassVar[int]
    operator_metadata: OperatorMetadata
    start_time_us: int
    finish_time_us: int
    table_checkpoint_metadata: _containers.MessageMap[str, TableCheckpointMetadata]
    table_configs: _containers.MessageMap[str, TableConfig]
    needs_commit: bool
    bytes: int
    subtask_index: int
    backlog: int
    def __init__(self, operator_metadata: _Optional[_Union[OperatorMetadata, _Mapping]] = ..., start_time_us: _Optional[int] = ..., finish_time_us: _Optional[int] = ..., table_checkpoint_metadata: _Optional[_Mapping[str, TableCheckpointMetadata]] = ..., table_configs: _Optional[_Mapping[str, TableConfig]] = ..., needs_commit: bool = ..., bytes: _Optional[int] = ..., subtask_index: _Optional[int] = ..., backlog: _Optional[int] = ...) -> None: ...

class DistributionDigest(_message.Message):
    __slots__ = ("name", "version", "sha256")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    sha256: bytes
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., sha256: _Optional[bytes] = ...) -> None: ...

class RecordedSetting(_message.Message):
    __slots__ = ("text", "digest", "parts", "has_parts")
    class PartsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: RecordedSetting
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[RecordedSetting, _Mapping]] = ...) -> None: ...
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    HAS_PARTS_FIELD_NUMBER: _ClassVar[int]
    text: str
    digest: bytes
    parts: _containers.MessageMap[str, RecordedSetting]
    has_parts: bool
    def __init__(self, text: _Optional[str] = ..., digest: _Optional[bytes] = ..., parts: _Optional[_Mapping[str, RecordedSetting]] = ..., has_parts: bool = ...) -> None: ...

class RecordedNode(_message.Message):
    __slots__ = ("operator_id", "operator", "distribution", "version", "is_source", "inputs", "settings")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: RecordedSetting
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[RecordedSetting, _Mapping]] = ...) -> None: ...
    OPERATOR_ID_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    DISTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    IS_SOURCE_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    operator_id: str
    operator: str
    distribution: str
    version: str
    is_source: bool
    inputs: _containers.RepeatedScalarFieldContainer[str]
    settings: _containers.MessageMap[str, RecordedSetting]
    def __init__(self, operator_id: _Optional[str] = ..., operator: _Optional[str] = ..., distribution: _Optional[str] = ..., version: _Optional[str] = ..., is_source: bool = ..., inputs: _Optional[_Iterable[str]] = ..., settings: _Optional[_Mapping[str, RecordedSetting]] = ...) -> None: ...

class RecordedNodes(_message.Message):
    __slots__ = ("nodes",)
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[RecordedNode]
    def __init__(self, nodes: _Optional[_Iterable[_Union[RecordedNode, _Mapping]]] = ...) -> None: ...

class CheckpointMetadata(_message.Message):
    __slots__ = ("job_id", "epoch", "min_epoch", "start_time_us", "finish_time_us", "parent_epoch", "generation", "attempt_id", "needs_commit", "operators", "plugins", "udfs", "is_final", "properties", "incarnation")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    MIN_EPOCH_FIELD_NUMBER: _ClassVar[int]
    START_TIME_US_FIELD_NUMBER: _ClassVar[int]
    FINISH_TIME_US_FIELD_NUMBER: _ClassVar[int]
    PARENT_EPOCH_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    NEEDS_COMMIT_FIELD_NUMBER: _ClassVar[int]
    OPERATORS_FIELD_NUMBER: _ClassVar[int]
    PLUGINS_FIELD_NUMBER: _ClassVar[int]
    UDFS_FIELD_NUMBER: _ClassVar[int]
    IS_FINAL_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    epoch: int
    min_epoch: int
    start_time_us: int
    finish_time_us: int
    parent_epoch: int
    generation: int
    attempt_id: bytes
    needs_commit: bool
    operators: _containers.RepeatedCompositeFieldContainer[OperatorCheckpointMetadata]
    plugins: _containers.RepeatedCompositeFieldContainer[DistributionDigest]
    udfs: _containers.RepeatedCompositeFieldContainer[DistributionDigest]
    is_final: bool
    properties: _containers.ScalarMap[str, bytes]
    incarnation: str
    def __init__(self, job_id: _Optional[str] = ..., epoch: _Optional[int] = ..., min_epoch: _Optional[int] = ..., start_time_us: _Optional[int] = ..., finish_time_us: _Optional[int] = ..., parent_epoch: _Optional[int] = ..., generation: _Optional[int] = ..., attempt_id: _Optional[bytes] = ..., needs_commit: bool = ..., operators: _Optional[_Iterable[_Union[OperatorCheckpointMetadata, _Mapping]]] = ..., plugins: _Optional[_Iterable[_Union[DistributionDigest, _Mapping]]] = ..., udfs: _Optional[_Iterable[_Union[DistributionDigest, _Mapping]]] = ..., is_final: bool = ..., properties: _Optional[_Mapping[str, bytes]] = ..., incarnation: _Optional[str] = ...) -> None: ...

class GenerationClaim(_message.Message):
    __slots__ = ("generation", "time_us", "owner_id", "incarnation")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    TIME_US_FIELD_NUMBER: _ClassVar[int]
    OWNER_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    generation: int
    time_us: int
    owner_id: bytes
    incarnation: str
    def __init__(self, generation: _Optional[int] = ..., time_us: _Optional[int] = ..., owner_id: _Optional[bytes] = ..., incarnation: _Optional[str] = ...) -> None: ...

class CommittedMarker(_message.Message):
    __slots__ = ("epoch", "generation", "time_us", "attempt_id")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    TIME_US_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    generation: int
    time_us: int
    attempt_id: bytes
    def __init__(self, epoch: _Optional[int] = ..., generation: _Optional[int] = ..., time_us: _Optional[int] = ..., attempt_id: _Optional[bytes] = ...) -> None: ...
