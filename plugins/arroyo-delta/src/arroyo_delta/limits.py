"""Limits of what the log of a table brings; docs/limits.md has them with all others."""

from __future__ import annotations

from arroyo_core.api.limits import Limit

LOG_ENTRY_BYTES = Limit("ARROYO_MAX_DELTA_LOG_ENTRY_BYTES", 256 * 2**20, "in one entry of the log of a table", True)
TABLE_FILES = Limit("ARROYO_MAX_DELTA_TABLE_FILES", 1_000_000, "files in one version of a table")

#: In the order of docs/limits.md, which is held against it.
LIMITS = (LOG_ENTRY_BYTES, TABLE_FILES)
