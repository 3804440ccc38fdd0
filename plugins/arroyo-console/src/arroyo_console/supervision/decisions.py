"""What becomes of a job whose process has ended: a pure decision over facts that were read before."""

from __future__ import annotations

from dataclasses import dataclass

from arroyo_console.values import State
from arroyo_core.cli.exits import DAMAGED, FENCED, INTERRUPTED, MISTAKE, OK

#: How the pause before another start grows: doubled each time, in seconds.
FIRST_PAUSE_S = 1.0
GREATEST_PAUSE_S = 60.0
#: A run that lasted so long was well: failures before it do not count any more.
HEALTHY_S = 120.0

_FINAL = {
    MISTAKE: "a mistake: see the log",
    FENCED: "another driver has the job",
    DAMAGED: "its checkpoints are damaged, or were removed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a run ended. `exit_code` is None where nobody saw it: the process was killed."""

    exit_code: int | None
    lasted_s: float
    #: Whether the data has come to its end.
    is_finished: bool
    #: Whether somebody has asked it to stop.
    is_asked: bool
    #: What the job said of itself, where it failed.
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The next state of the job, and why; for `RESTARTING` after which pause."""

    state: State
    reason: str
    pause_s: float = 0.0
    #: Failures in a row from now on.
    failures: int = 0


def after_end(end: End, *, failures: int, max_restarts: int) -> Decision:
    """What to do with a job whose run has ended; `failures` are those in a row before it."""
    if end.exit_code == OK and end.is_finished:
        return Decision(state=State.FINISHED, reason="its data has ended")
    if end.is_asked:
        return Decision(state=State.STOPPED, reason="it was asked to stop" if end.exit_code == OK else words(end))
    if end.exit_code in (OK, INTERRUPTED):
        return Decision(state=State.STOPPED, reason="it was stopped from outside of this server")
    if end.exit_code in _FINAL:
        reason = f"{words(end)} ({_FINAL[end.exit_code]}): starting it again would not help"
        return Decision(state=State.FAILED, reason=reason)
    failures = 1 if end.lasted_s >= HEALTHY_S else failures + 1
    if failures > max_restarts:
        reason = f"{words(end)}; it was started again {max_restarts} times in a row"
        return Decision(state=State.FAILED, reason=reason, failures=failures)
    pause_s = min(FIRST_PAUSE_S * 2 ** (failures - 1), GREATEST_PAUSE_S)
    return Decision(
        state=State.RESTARTING, reason=f"{words(end)}; next start in {pause_s:g} s", pause_s=pause_s, failures=failures
    )


def words(end: End) -> str:
    """How it ended, as a clause."""
    if end.exit_code is None:
        return "its process was killed"
    if end.exit_code < 0:
        return f"its process was ended by signal {-end.exit_code}"
    return f"it ended with exit code {end.exit_code}" + (f": {end.error}" if end.error else "")
