"""How much is read of what a checkpoint has for a commit; docs/limits.md has it with all others."""

from __future__ import annotations

from arroyo_core.api.limits import Limit

STAGED_BATCH_BYTES = Limit(
    "ARROYO_MAX_STAGED_BATCH_BYTES",
    2**30,
    "in a batch of rows that waits for its commit to a database, unpacked",
    is_bytes=True,
    least=2**20,
)

LIMITS = (STAGED_BATCH_BYTES,)
