"""What an adversary may do, and how likely it does."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Deed(StrEnum):
    """What was done to a job; each is counted."""

    #: An attempt was lost in the middle: its process was killed.
    LOSE_ATTEMPT = "attempts lost"
    #: The same, inside a call to storage.
    LOSE_AT_STORAGE = "attempts lost at a call to storage"
    #: An attempt that Spark has given up goes on later, and may end.
    SLEEP = "attempts that sleep"
    WAKE = "steps of attempts that were given up"
    END_LATE = "attempts that were given up and ended"
    #: A second attempt was started beside a running one.
    SPECULATE = "second attempts at once"
    #: An attempt ended whose task had an output already; it took the place of that, or not.
    IGNORE = "outputs that came second"
    REPLACE = "outputs that replaced others"
    #: A host was lost, with the outputs of its finished tasks and all its attempts.
    LOSE_HOST = "hosts lost"
    LOSE_OUTPUT = "outputs lost after success"
    #: An attempt found that an output it was to read is gone.
    FAIL_FETCH = "fetches failed"
    #: An attempt raised an error that may pass.
    OUTAGE = "outages"
    #: The job of an epoch failed as a whole, when some or all of it was done.
    FAIL_JOB = "jobs failed"
    #: An epoch was run again, since its senders and receivers did not agree, or after a failure.
    REPEAT_EPOCH = "epochs repeated"
    KILL_DRIVER = "drivers killed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Odds:
    """The chance of each deed at each opportunity; mostly that is a turn, in which an attempt makes some frames."""

    lose_attempt: float = 0.05
    speculate: float = 0.12
    lose_host: float = 0.04
    #: While some tasks of a stage have ended and others have not: an output that all of them read is lost.
    lose_output: float = 0.25
    #: Of outputs that come second.
    replace: float = 0.5
    outage: float = 0.02
    fail_job: float = 0.004
    #: Of attempts that are given up: they are not dead, but sleep; and of those that sleep, to go on for a while.
    sleep: float = 0.5
    wake: float = 0.1
    #: Of drivers, in each turn and at each of their events.
    kill_driver: float = 0.006
    #: Of whoever makes a call that changes storage: to be dead before it is made.
    die_at_storage: float = 0.006
    #: An attempt's sources stop after so much more or less than they should, as a share.
    vary_budget: float = 0.6
    hosts: int = 3


#: Nothing ever happens: as `LocalExecutor`, but for the order of things.
NO_ODDS = Odds(
    lose_attempt=0,
    speculate=0,
    lose_host=0,
    lose_output=0,
    replace=0,
    outage=0,
    fail_job=0,
    sleep=0,
    wake=0,
    kill_driver=0,
    die_at_storage=0,
    vary_budget=0,
)
