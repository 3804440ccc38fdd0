"""What planning a pipeline may do: which files it reads, whether it reaches the network, whether foreign code runs.

Operators, formats and lookups ask `current_policy()` before they do any of that in `resolve`, `with_config` or
`output_schema`. Authors of pipelines are trusted, unless the policy says otherwise. Where a pipeline runs they are.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from arroyo_core.api.limits import Limit
from arroyo_core.api.urls import absolute_url
from arroyo_core.errors import RefusedError

#: Folders beside those of pipeline files that they may include files of, like `PATH`.
ROOTS_VARIABLE = "ARROYO_ROOTS"
#: What tells the folder of a project.
_PROJECT_MARKS = (".git", "pyproject.toml")
_LOCAL = ("file", "local")


class TooLargeError(OSError):
    """A file has more bytes than planning takes in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningPolicy:
    """`roots` are given beside those that follow from the place of a pipeline."""

    is_untrusted: bool = False
    roots: tuple[Path, ...] = ()
    #: The variables of the environment that an untrusted pipeline may read.
    variables: frozenset[str] = frozenset()

    def is_readable_variable(self, name: str) -> bool:
        return not self.is_untrusted or name in self.variables

    def include_roots(self, file: str | Path) -> tuple[Path, ...]:
        """The folders that a pipeline file may include files of."""
        if self.is_untrusted:
            return self.roots
        folder = Path(file).absolute().parent
        return tuple(dict.fromkeys((folder.resolve(), *_project_roots(folder), *self.roots)))

    def check_network(self, what: str, *, field: str | None = None, instead: str = "") -> None:
        """Raise `RefusedError` where nothing outside of this machine may be asked.

        `what` completes "untrusted mode refuses"; `instead` says how to do without.
        """
        if self.is_untrusted:
            hint = f": {instead}" if instead else ""
            raise RefusedError(f"untrusted mode refuses {what}, which needs the network{hint}", field=field)

    def check_code(self, what: str, *, field: str | None = None) -> None:
        """Raise `RefusedError` where code that the pipeline chooses must not run."""
        if self.is_untrusted:
            raise RefusedError(
                f"untrusted mode refuses {what}: code that a pipeline chooses would run; "
                "trust the pipeline, and leave --untrusted away",
                field=field,
            )

    def check_url(self, url: str, *, field: str | None = None) -> None:
        """Raise `RefusedError` where what is there may not be read: not a local file, or not below a root."""
        if not self.is_untrusted:
            return
        path = local_path(url)
        if path is None:
            self.check_network(f"to read {url!r}", field=field)
        else:
            self.check_path(path, field=field)

    def check_path(self, path: str | Path, *, field: str | None = None) -> None:
        """As `check_url`, for a local path; links are followed."""
        if self.is_untrusted and not is_below(path, self.roots):
            raise RefusedError(
                f"untrusted mode refuses to read {str(path)!r}, which is not below {_named(self.roots)}: "
                "--root DIR allows a folder",
                field=field,
                value=str(path),
            )

    def read_file(self, path: str | Path, limit: Limit, *, field: str | None = None) -> bytes:
        """A regular file that a pipeline names. Raises `RefusedError`, `OSError`, and `TooLargeError` of these."""
        self.check_path(path, field=field)
        return read_limited(path, limit)


def read_limited(path: str | Path, limit: Limit, *, is_regular: bool = True) -> bytes:
    """The bytes of a file, which is a regular one unless that is not asked for.

    Raises `OSError`; `TooLargeError` where it has more bytes than the limit.
    """
    # Not blocking: to open a pipe that nobody writes to would never end.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | (os.O_NONBLOCK if is_regular else 0)
    descriptor = os.open(path, flags)
    with os.fdopen(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if is_regular and not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        data = file.read(limit.value + 1)
    if len(data) > limit.value:
        raise TooLargeError(errno.EFBIG, f"it is too large: {limit.hint}", str(path))
    return data


def is_below(path: str | Path, roots: tuple[Path, ...]) -> bool:
    """Whether a path, links followed, is one of the folders or in one."""
    try:
        found = Path(path).resolve()
    except (OSError, RuntimeError, ValueError):
        return False
    return any(found.is_relative_to(root) for root in roots)


def local_path(url: str) -> str | None:
    """The absolute path that a plain path or a URL of a local file means; None for everything else."""
    if "::" in url:
        return None
    absolute = absolute_url(url)
    if "://" not in absolute:
        return absolute
    parts = urlsplit(absolute)
    return absolute.partition("://")[2] if parts.scheme in _LOCAL else None


def given_roots() -> tuple[Path, ...]:
    """Those of the variable `ARROYO_ROOTS`."""
    return tuple(Path(path).resolve() for path in os.environ.get(ROOTS_VARIABLE, "").split(os.pathsep) if path)


def _project_roots(folder: Path) -> Iterator[Path]:
    """The nearest folder above that is a project's, and the working directory where it is above."""
    above = (folder, *folder.parents)
    yield from [path.resolve() for path in above if any((path / mark).exists() for mark in _PROJECT_MARKS)][:1]
    try:
        here = Path.cwd()
    except OSError:
        return
    if here in above:
        yield here.resolve()


def _named(roots: tuple[Path, ...]) -> str:
    return " or ".join(str(root) for root in roots) or "any root"


TRUSTED = PlanningPolicy()
_process_policy: PlanningPolicy | None = None
_current: ContextVar[PlanningPolicy | None] = ContextVar("arroyo_planning_policy", default=None)


def current_policy() -> PlanningPolicy:
    """What holds here: that of the pipeline being planned, else that of the process, else trust."""
    return _current.get() or _process_policy or PlanningPolicy(roots=given_roots())


def set_process_policy(policy: PlanningPolicy) -> None:
    """For all threads, from now on: for a process that does nothing else."""
    global _process_policy
    _process_policy = policy


@contextmanager
def in_force(policy: PlanningPolicy) -> Iterator[None]:
    """While inside, `current_policy` gives this one."""
    token = _current.set(policy)
    try:
        yield
    finally:
        _current.reset(token)
