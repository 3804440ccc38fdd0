"""Limits of what a server sends; docs/limits.md has them with all others."""

from __future__ import annotations

from arroyo_core.api.limits import Limit

#: The server's own greatest packet, a row of it, is 1 GiB.
EVENT_BYTES = Limit("ARROYO_MAX_MYSQL_EVENT_BYTES", 2 * 2**30, "in an event of a binlog, unpacked", True)

#: In the order of docs/limits.md, which is held against it.
LIMITS = (EVENT_BYTES,)
