"""Which filesystems are object stores: no folders to make, and a rename is a copy."""

from __future__ import annotations

from typing import Any

PROTOCOLS = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "memory"})


def is_object_store(fs: Any) -> bool:
    """Whether a file appears at once and whole when it is closed or copied."""
    protocols = (fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol
    return not PROTOCOLS.isdisjoint(protocols)
