"""Outages of outside services that last longer than an epoch: since when, how often tried, and when to try again.

An instance lives for one epoch, and `ctx.wait` ends with the epoch. So what is known of an outage is in a state table:
limits count over epochs, restarts and changes of parallelism.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass

from arroyo_core.api.context import SourceContext
from arroyo_core.api.signals import ControlMessage
from arroyo_core.errors import ExternalError, RetryHint, retry_hint

#: The name of the table, unless another one is given.
OUTAGES = "outages"
#: What each failed attempt is counted as.
RETRIES = "retries"
#: Of a reason that is longer, the beginning is kept.
_MAX_REASON = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How long to wait between attempts, and when to give up; None for never.

    The wait is twice as long after each attempt that fails, up to `longest_wait_s`.
    """

    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    #: So many attempts may fail in a row; the last of them raises.
    max_attempts: int | None = None
    #: An attempt that fails so long after the first one raises.
    max_duration_s: float | None = None

    def wait_s(self, attempts: int) -> float:
        """How long to wait after so many failed attempts in a row."""
        # Beyond 2**60 no first wait is below the longest, and a float has an end.
        return min(self.first_wait_s * 2.0 ** min(attempts - 1, 60), self.longest_wait_s)

    def is_spent(self, outage: Outage, now_us: int) -> bool:
        """Whether an attempt that failed now, as `outage` has it, was the last."""
        is_last = self.max_attempts is not None and outage.attempts >= self.max_attempts
        return is_last or (self.max_duration_s is not None and now_us - outage.since_us >= self.max_duration_s * 1e6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """Attempts that failed in a row; times are those of `ctx.clock`, in microseconds."""

    attempts: int
    since_us: int
    #: Not before this time comes the next attempt.
    next_us: int
    #: Of the last attempt.
    reason: str

    def describe(self, now_us: int) -> str:
        """For people: why, since when, how long and how often."""
        since = datetime.datetime.fromtimestamp(self.since_us // 1_000_000, datetime.UTC)
        attempts = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
        lasts = _duration((now_us - self.since_us) / 1e6)
        return f"{self.reason}; failing since {since:%Y-%m-%dT%H:%M:%SZ} ({lasts}), {attempts}"


def derive_outage(
    before: Outage | None, reason: str, *, policy: RetryPolicy, now_us: int, wait_s: float | None = None
) -> Outage:
    """What is known after an attempt failed now; `wait_s` is what the service asks for, in place of the policy's."""
    attempts = before.attempts + 1 if before is not None else 1
    wait_us = round((policy.wait_s(attempts) if wait_s is None else wait_s) * 1e6)
    return Outage(
        attempts=attempts,
        since_us=before.since_us if before is not None else now_us,
        next_us=now_us + wait_us,
        reason=reason if len(reason) <= _MAX_REASON else reason[: _MAX_REASON - 1] + "…",
    )


class Outages:
    """The outages that a source has to do with: made in `on_start`, used in `run`.

        def tables(self):
            return global_table_config(OUTAGES, "services that fail", is_partitioned=True)

        def run(self, ctx, collector):
            while (message := self._outages.wait()) is None:
                try:
                    rows = self._client.read(...)
                except OSError as error:
                    self._outages.failed(error)
                    continue
                self._outages.succeeded()
                ...
            return message.finish_type

    What fails is told apart by `key`: a partition, a host; one for all by default. An outage is shown as a warning in
    every epoch in which it lasts, and each failed attempt is counted as `retries`.
    """

    def __init__(
        self,
        ctx: SourceContext,
        policy: RetryPolicy | None = None,
        *,
        table: str = OUTAGES,
        owner: Callable[[str], int] | None = None,
        retried: tuple[type[Exception], ...] = (),
    ) -> None:
        """`table` is a partitioned table of the source.

        `owner` gives the subtask of a key, as for any partitioned table; without it every subtask has its own.
        `retried` are exceptions that are retried beside `ExternalError` and what `OSError`s may pass by themselves.
        """
        self._ctx = ctx
        self._policy = policy or RetryPolicy()
        self._retried = retried
        self._is_shared = owner is not None
        self._known = ctx.table_manager.get_partitioned_keyed_state(
            table, owner or _own_subtask, key_type=str, value_type=Outage
        )

    def failed(self, error: Exception, key: str = "", *, wait_s: float | None = None) -> None:
        """An attempt failed: note it, and when to try again. `wait_s` is how long the service asks to wait.

        Raises `error` itself if no retry can help, and `ExternalError` past the policy's limit. The job then restarts
        from its last checkpoint, at most `--max-restarts` times; the outage goes on there, so that an attempt that
        fails raises at once.
        """
        if retry_hint(error) is RetryHint.NO_RETRY and not isinstance(error, self._retried):
            raise error
        now_us = self._ctx.clock.now_us()
        reason = self._ctx.redact(str(error) or type(error).__name__)
        outage = derive_outage(self._get(key), reason, policy=self._policy, now_us=now_us, wait_s=wait_s)
        if self._policy.is_spent(outage, now_us):
            raise ExternalError(f"{_prefix(key)}{outage.describe(now_us)}: given up") from error
        self._known.insert(self._stored(key), outage)
        self._ctx.count(RETRIES)
        self._warn(key, outage, now_us)

    def succeeded(self, key: str = "") -> None:
        """An attempt worked: whatever was wrong is over. Costs next to nothing where nothing was."""
        outage = self._get(key)
        if outage is None:
            return
        self._known.remove(self._stored(key))
        lasted = _duration((self._ctx.clock.now_us() - outage.since_us) / 1e6)
        self._ctx.warn(f"{_prefix(key)}works again, after {lasted}", topic=f"end of the outage of {key!r}")

    def is_due(self, key: str = "") -> bool:
        """Whether it is time for an attempt; for sources that read several things, of which some may fail."""
        outage = self._get(key)
        now_us = self._ctx.clock.now_us()
        if outage is None or outage.next_us <= now_us:
            return True
        self._warn(key, outage, now_us)
        return False

    def wait(self, key: str = "") -> ControlMessage | None:
        """Wait until it is time for an attempt: at once where nothing is wrong.

        Returns the message to obey, as `ctx.control` does, which need not be asked as well. The next epoch waits for
        the rest.
        """
        outage = self._get(key)
        now_us = self._ctx.clock.now_us()
        if outage is None or outage.next_us <= now_us:
            return self._ctx.control()
        self._warn(key, outage, now_us)
        return self._ctx.wait((outage.next_us - now_us) / 1e6)

    def _warn(self, key: str, outage: Outage, now_us: int) -> None:
        left = _duration(max(0, outage.next_us - now_us) / 1e6)
        text = f"{_prefix(key)}{outage.describe(now_us)}, the next in {left}"
        self._ctx.warn(text, topic=f"outage of {key!r}")

    def _get(self, key: str) -> Outage | None:
        return self._known.get(self._stored(key))

    def _stored(self, key: str) -> str:
        return key if self._is_shared else f"{key}@{self._ctx.task_info.task_index}"


def _own_subtask(stored: str) -> int:
    index = stored.rpartition("@")[2]
    # None of them for a key that was stored while the source gave an `owner`.
    return int(index) if index.isdigit() else -1


def _prefix(key: str) -> str:
    return f"{key}: " if key else ""


def _duration(seconds: float) -> str:
    """About how long, in words: `48s`, `5m 3s`, `2h 0m`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    return f"{whole // 60}m {whole % 60}s" if whole < 3600 else f"{whole // 3600}h {whole % 3600 // 60}m"
