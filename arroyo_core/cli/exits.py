"""The exit codes of `arroyo`; docs/running.md says what a supervisor makes of each."""

from __future__ import annotations

from arroyo_core.errors import ArroyoError, Domain, OperatorError, error_domain

OK = 0
FAILURE = 1
#: The user can fix it: a mistake in a pipeline, an argument, a missing plugin or a missing Java.
MISTAKE = 2
#: Another driver has the job. Whoever starts this one again takes the job away from it.
FENCED = 3
#: Checkpoints are damaged, or were removed while the job ran.
DAMAGED = 4
#: An epoch made no progress for `checkpoint.timeout`, after all restarts.
TIMED_OUT = 5
INTERRUPTED = 130

#: By the class of an error. Those of tasks arrive by the names of their classes.
_CODES = {
    "DamagedStateError": DAMAGED,
    "EpochTimeoutError": TIMED_OUT,
    "FencedError": FENCED,
    "RemovedStateError": DAMAGED,
    "SealKeyError": MISTAKE,
}


def exit_code(error: BaseException) -> int:
    """The code of a command that ends with this error."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    names = [error.cause_kind] if isinstance(error, OperatorError) else [kind.__name__ for kind in type(error).__mro__]
    for name in names:
        if name in _CODES:
            return _CODES[name]
    is_mistake = isinstance(error, ArroyoError) and error_domain(error) is Domain.USER
    return MISTAKE if is_mistake else FAILURE
