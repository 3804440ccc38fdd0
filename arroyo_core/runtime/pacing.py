"""How long things may take and how long to wait: pure functions of what was measured."""

from __future__ import annotations

import zlib

#: Waiting after a failure begins with this, and doubles.
BACKOFF_MS = 500
MAX_BACKOFF_MS = 60_000

#: Waiting because there is nothing to read begins with this, and doubles.
IDLE_MS = 250
MAX_IDLE_MS = 10_000

#: Sources always get this share of the interval.
_LEAST_SHARE = 10


def derive_source_ms(*, interval_ms: int, source_ms: int, duration_ms: int) -> int:
    """How long sources may read in the next epoch, so that all of it takes `interval_ms`.

    `source_ms` is what they had in the last one, which took `duration_ms` in all. One odd epoch
    moves it by a factor of two at most.
    """
    factor = min(2.0, max(0.5, interval_ms / max(1, duration_ms)))
    return min(interval_ms, max(interval_ms // _LEAST_SHARE, int(source_ms * factor)))


def derive_backoff_ms(failures: int, *, seed: str) -> int:
    """How long to wait after the given failure in a row, the first being 1.

    Half of it is spread by `seed`, so that jobs that failed together do not come back together;
    the same seed gives the same wait, so that a log can be replayed.
    """
    most = min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** min(failures - 1, 16))
    spread = zlib.crc32(f"{seed}:{failures}".encode()) / 2**32
    return int(most / 2 + spread * most / 2)


def derive_idle_ms(empty_epochs: int) -> int:
    """How long to wait before the next epoch after so many without a row; none after the first.

    A source that has nothing for a moment must not slow its pipeline down.
    """
    if empty_epochs < 2:
        return 0
    return int(min(MAX_IDLE_MS, IDLE_MS * 2 ** min(empty_epochs - 2, 16)))
