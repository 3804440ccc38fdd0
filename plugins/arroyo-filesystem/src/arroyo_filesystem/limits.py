"""Limits of what files bring; docs/limits.md has them with all others. Those of a sink are settings of its config."""

from __future__ import annotations

from arroyo_core.api.limits import Limit

LISTED_FILES = Limit("ARROYO_MAX_LISTED_FILES", 1_000_000, "files in the listing of a filesystem.source")
#: A name takes a time that grows with this power of its length, where whoever wrote it wants that.
PATTERN_STARS = Limit("ARROYO_MAX_PATTERN_STARS", 4, "stars in one name of a path, or `**` in all of it")

#: In the order of docs/limits.md, which is held against it.
LIMITS = (LISTED_FILES, PATTERN_STARS)
