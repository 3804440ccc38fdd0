"""Limits of what formats take in; docs/limits.md has them with all others."""

from __future__ import annotations

from arroyo_core.api.limits import Limit

LINE_BYTES = Limit(
    "ARROYO_MAX_LINE_BYTES",
    256 * 2**20,
    "in a line of a file of text, unpacked",
    is_bytes=True,
    least=1,
    greatest=2**31 - 1,
)
SCHEMA_TYPES = Limit("ARROYO_MAX_SCHEMA_TYPES", 100_000, "types in a schema, each counted where it is used")
ROW_GROUP_BYTES = Limit(
    "ARROYO_MAX_ROW_GROUP_BYTES",
    4 * 2**30,
    "in a row group of a Parquet file, or a record batch of an Arrow file, unpacked",
    is_bytes=True,
)
AVRO_BLOCK_BYTES = Limit(
    "ARROYO_MAX_AVRO_BLOCK_BYTES",
    256 * 2**20,
    "in a block of an Avro file, unpacked",
    is_bytes=True,
    greatest=2**31 - 1,
)
AVRO_BLOCK_VALUES = Limit("ARROYO_MAX_AVRO_BLOCK_VALUES", 2**22, "values in a block of an Avro file")
MESSAGE_ROWS_BYTES = Limit(
    "ARROYO_MAX_MESSAGE_ROWS_BYTES",
    256 * 2**20,
    "in the rows of one message that is a file (Parquet, Arrow)",
    is_bytes=True,
)
REGISTRY_BYTES = Limit("ARROYO_MAX_REGISTRY_BYTES", 64 * 2**20, "in an answer of a schema registry", is_bytes=True)
REGISTRY_REFERENCES = Limit(
    "ARROYO_MAX_REGISTRY_REFERENCES", 200, "schemas that a schema of a registry refers to, with theirs", greatest=500
)

#: In the order of docs/limits.md, which is held against it.
LIMITS = (
    LINE_BYTES,
    SCHEMA_TYPES,
    ROW_GROUP_BYTES,
    AVRO_BLOCK_BYTES,
    AVRO_BLOCK_VALUES,
    MESSAGE_ROWS_BYTES,
    REGISTRY_BYTES,
    REGISTRY_REFERENCES,
)
