"""The errors of the state layer; all are `StateError`s and name the file or the table."""

from __future__ import annotations

import msgspec

from arroyo_core.errors import Domain, RetryHint, StateError

#: What msgspec raises for bytes that are not the JSON it is asked for.
UNREADABLE_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class StorageError(StateError):
    """The object store refused or failed a call, after every retry."""

    domain = Domain.EXTERNAL


class MissingFileError(StorageError):
    """A file that must exist does not."""

    retry = RetryHint.NO_RETRY


class UnsafeStorageError(StateError):
    """The store cannot hold checkpoints: of drivers that create a file at once, more than one is told that it won."""

    domain = Domain.USER
    retry = RetryHint.NO_RETRY


class DamagedStateError(StateError):
    """A file of a checkpoint is not what was written: changed, cut, missing or not readable."""

    domain = Domain.EXTERNAL
    retry = RetryHint.NO_RETRY


class OversizedFileError(DamagedStateError):
    """A file is larger than any that a job writes: it is not read."""


class SealError(DamagedStateError):
    """A file has no seal, or not its own: it is not what a driver with the key wrote there."""


class SealKeyError(SealError):
    """A file is sealed with a key that is not given."""

    domain = Domain.USER


class NoRegisteredTableError(StateError):
    """A table was asked for that the operator does not declare."""

    domain = Domain.USER
    retry = RetryHint.NO_RETRY


class WrongTableKindError(StateError):
    """A table was asked for as another kind, or a second time with another view."""

    domain = Domain.USER
    retry = RetryHint.NO_RETRY


class StateValueError(StateError):
    """A key, value or batch that the table cannot hold."""

    domain = Domain.USER
    retry = RetryHint.NO_RETRY


class UnsupportedStateVersionError(StateError):
    """State was written by a version that this code cannot read."""

    domain = Domain.USER
    retry = RetryHint.NO_RETRY


class IncompatibleCheckpointError(StateError):
    """A checkpoint does not fit the operator: a table is gone or changed its kind or columns."""

    domain = Domain.USER
    retry = RetryHint.NO_RETRY


class StaleViewError(StateError):
    """Rows were processed with a view that did not show yet what another subtask had written: the epoch is void."""

    domain = Domain.INTERNAL
    retry = RetryHint.WITH_BACKOFF


class ForkError(StateError):
    """The checkpoint to fork from is not there, cannot be taken, or is not named properly."""

    domain = Domain.USER
    retry = RetryHint.NO_RETRY


class FencedError(StateError):
    """A newer generation owns the job: this driver must stop."""

    domain = Domain.EXTERNAL
    retry = RetryHint.NO_RETRY


class RemovedStateError(FencedError):
    """The state of the job was removed while its driver ran: this driver must stop, and another would start over."""


class EpochTakenError(FencedError):
    """Another attempt published the epoch first; resolve the latest checkpoint and go on from there."""

    retry = RetryHint.WITH_BACKOFF
