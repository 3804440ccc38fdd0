"""One tree of errors: each says who can fix it and whether a retry can help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


class Domain(StrEnum):
    """Who can fix an error."""

    USER = "user"
    EXTERNAL = "external"
    INTERNAL = "internal"


class RetryHint(StrEnum):
    """Whether running the same thing again can help."""

    NO_RETRY = "no_retry"
    WITH_BACKOFF = "with_backoff"


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file a person wrote; lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class ArroyoError(Exception):
    """The root of all errors raised on purpose by arroyo_core and its plugins.

    Instances survive pickling, because they travel from executors to the driver.
    """

    domain: ClassVar[Domain] = Domain.INTERNAL
    retry: ClassVar[RetryHint] = RetryHint.NO_RETRY

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.__dict__))


def _rebuild(cls: type[ArroyoError], attributes: dict[str, object]) -> ArroyoError:
    error = cls.__new__(cls)
    error.__dict__.update(attributes)
    error.args = (attributes.get("message"),)
    return error


class PipelineError(ArroyoError):
    """One mistake in a pipeline file: what, where, what is allowed.

    `value` is the offending value as written, `allowed` the choices where there are few,
    `suggestion` the nearest of them ("did you mean"). `code` names the kind of mistake, for those that have one.
    """

    domain = Domain.USER

    def __init__(
        self,
        message: str,
        *,
        at: Location | None = None,
        value: object = None,
        allowed: Sequence[str] = (),
        suggestion: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.at = at
        self.value = value
        self.allowed = tuple(allowed)
        self.suggestion = suggestion
        #: False where the line itself must not be repeated: it has a secret.
        self.shows_line = True

    def __str__(self) -> str:
        text = f"{self.at}: {self.message}" if self.at else self.message
        if self.suggestion:
            text += f" (did you mean {self.suggestion!r}?)"
        elif self.allowed:
            text += f" (allowed: {', '.join(self.allowed)})"
        return text


class InvalidPipelineError(ArroyoError):
    """Every mistake found in one pipeline file, in the order of their places."""

    domain = Domain.USER

    def __init__(self, errors: Sequence[PipelineError]) -> None:
        super().__init__("\n".join(str(error) for error in errors))
        self.errors = tuple(errors)


class ConfigError(ArroyoError):
    """Raised by a constructor, or by `output_schema`, that cannot accept its config or inputs.

    `field` is the path of the offending field inside the node's config, as written in YAML:
    `predicate`, `expressions.total`, `aggregates[0].column`. The planner turns it into a
    `PipelineError` with line and column.
    """

    domain = Domain.USER

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        value: object = None,
        allowed: Sequence[str] = (),
        suggestion: str | None = None,
    ) -> None:
        super().__init__(message)
        self.field = field
        self.value = value
        self.allowed = tuple(allowed)
        self.suggestion = suggestion

    def within(self, parent: str) -> ConfigError:
        """The same mistake, of a config that is the field `parent` of another."""
        path = f"{parent}.{self.field}" if self.field else parent
        return type(self)(self.message, field=path, value=self.value, allowed=self.allowed, suggestion=self.suggestion)


class RefusedError(ConfigError):
    """What a pipeline asks for is refused while it is planned in untrusted mode."""


class OutOfTimeError(BaseException):
    """The time for planning a pipeline is over. No code but that which set the time handles it."""


class PluginError(ArroyoError):
    """A plugin cannot be used: it failed to import, takes a taken name, or has another version."""

    domain = Domain.USER


class SetupError(ArroyoError):
    """The machine lacks something: Java, a Python version, a reachable Spark master."""

    domain = Domain.USER


class DataError(ArroyoError):
    """A row that an operator cannot accept."""

    domain = Domain.USER


class UdfDeclarationError(ArroyoError):
    """A user function is declared wrongly; raised where it is decorated."""

    domain = Domain.USER


class UdfError(ArroyoError):
    """Code of a user function failed, or gave what it did not declare.

    `udf` is its name and `source` where it came from; `sample` shows the arguments of one failing call, and
    `traceback` has the user's frames only. All but the name may be empty.
    """

    domain = Domain.USER

    def __init__(self, message: str, *, udf: str, source: str = "", sample: str = "", traceback: str = "") -> None:
        super().__init__(message)
        self.udf = udf
        self.source = source
        self.sample = sample
        self.traceback = traceback

    @property
    def summary(self) -> str:
        """All but the traceback, on one line where the message is."""
        origin = f" of {self.source}" if self.source else ""
        sample = f"; called with {self.sample}" if self.sample else ""
        return f"UDF {self.udf!r}{origin}: {self.message}{sample}"

    def __str__(self) -> str:
        return f"{self.summary}\n{self.traceback}".rstrip()


class UdfTimeoutError(UdfError):
    """A user function has not come back in time. Not about one row: the job fails whatever is done about rows."""


class ExternalError(ArroyoError):
    """A service outside failed; the same call may work later."""

    domain = Domain.EXTERNAL
    retry = RetryHint.WITH_BACKOFF


class StateError(ArroyoError):
    """State could not be written or restored; the message names the file and the checkpoint."""

    retry = RetryHint.WITH_BACKOFF


class UnsafePathError(StateError):
    """A path that was read from storage leaves the folder that it belongs to. Nothing was moved, and no retry helps."""

    domain = Domain.EXTERNAL
    retry = RetryHint.NO_RETRY


class ExchangeError(ArroyoError):
    """Senders and receivers of an epoch disagree: the epoch is discarded and run again."""

    retry = RetryHint.WITH_BACKOFF


class OperatorError(ArroyoError):
    """Foreign code (an operator, a UDF, a source) failed inside a subtask.

    Carries the original traceback as text, and the class name, the domain and the retry hint of the cause.
    """

    def __init__(
        self,
        message: str,
        *,
        operator_id: str,
        subtask: int,
        epoch: int,
        traceback: str,
        cause_domain: Domain = Domain.USER,
        cause_retry: RetryHint = RetryHint.NO_RETRY,
        cause_kind: str = "",
    ) -> None:
        super().__init__(message)
        self.operator_id = operator_id
        self.subtask = subtask
        self.epoch = epoch
        self.traceback = traceback
        self.cause_domain = cause_domain
        self.cause_retry = cause_retry
        self.cause_kind = cause_kind

    def __str__(self) -> str:
        return f"operator {self.operator_id!r}, subtask {self.subtask}, epoch {self.epoch}: {self.message}"


#: Of what the operating system says, these stay as they are until somebody fixes them.
_LASTING_OS_ERRORS = (FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


@contextmanager
def naming_path(path: str) -> Iterator[None]:
    """Add `path` to an error of the operating system that names none: that of a full disk does not, for one."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = path
        raise


def retry_hint(error: BaseException) -> RetryHint:
    """The retry hint of any exception; what is not ours and not an outage is not retried."""
    if isinstance(error, OperatorError):
        return error.cause_retry
    if isinstance(error, ArroyoError):
        return error.retry
    if isinstance(error, _LASTING_OS_ERRORS):
        return RetryHint.NO_RETRY
    return RetryHint.WITH_BACKOFF if isinstance(error, OSError) else RetryHint.NO_RETRY


def error_domain(error: BaseException) -> Domain:
    """Who can fix any exception; foreign code that fails is its author's to fix."""
    if isinstance(error, OperatorError):
        return error.cause_domain
    if isinstance(error, ArroyoError):
        return error.domain
    if isinstance(error, OSError):
        return Domain.EXTERNAL
    return Domain.USER
