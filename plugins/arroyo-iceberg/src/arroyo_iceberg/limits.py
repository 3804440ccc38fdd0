"""Limits of what a table brings; docs/limits.md has them with all others."""

from __future__ import annotations

from arroyo_core.api.limits import Limit

METADATA_BYTES = Limit(
    "ARROYO_MAX_ICEBERG_METADATA_BYTES", 256 * 2**20, "in a metadata file of an Iceberg table, unpacked", True
)
MANIFEST_BYTES = Limit(
    "ARROYO_MAX_ICEBERG_MANIFEST_BYTES", 256 * 2**20, "in a manifest, or a list of manifests, of an Iceberg table", True
)
KEYS_BYTES = Limit(
    "ARROYO_MAX_ICEBERG_KEYS_BYTES", 4 * 2**30, "in the keys that a subtask deletes in an epoch, unpacked", True
)
ANSWER_BYTES = Limit(
    "ARROYO_MAX_ICEBERG_ANSWER_BYTES", 256 * 2**20, "in an answer of an Iceberg REST catalog, unpacked", True
)

#: In the order of docs/limits.md, which is held against it.
LIMITS = (METADATA_BYTES, MANIFEST_BYTES, KEYS_BYTES, ANSWER_BYTES)
