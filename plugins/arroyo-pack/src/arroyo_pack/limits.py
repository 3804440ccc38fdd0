"""How much is sent to executors."""

from __future__ import annotations

from arroyo_core.api.limits import Limit

PACK_BYTES = Limit("ARROYO_MAX_PACK_BYTES", 2 * 2**30, "in an archive for executors", True)

LIMITS = (PACK_BYTES,)
