"""How a source watches its folder: the settings beside `watch`, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from arroyo_core.api.units import format_duration_us
from arroyo_core.errors import ConfigError
from arroyo_filesystem.filesystem_pb2 import SourceConfig
from arroyo_filesystem.listing import File, fixed_folder, is_hidden
from arroyo_filesystem.location import Location, open_location

DEFAULT_LATENESS_US = 3_600_000_000
DEFAULT_REMEMBERED_FILES = 50_000
NOW = "now"


class Order(StrEnum):
    """In which order files are read, and what bounds the memory of those that were."""

    #: By name, and no file that is still there is forgotten.
    NONE = ""
    NAME = "name"
    TIME = "time"


class AfterCommit(StrEnum):
    """What becomes of a file that was read."""

    KEEP = ""
    ARCHIVE = "archive"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """A checked watch."""

    interval_us: int
    order: Order
    is_start_new: bool
    lateness_us: int
    max_remembered_files: int
    #: None for no end, `NOW` for the time of the first look, else microseconds.
    until: int | str | None
    after_commit: AfterCommit
    #: Where files are moved to, with `AfterCommit.ARCHIVE`.
    archive: Location | None
    #: Whether lines are appended to files that were read.
    grows: bool = False

    def key(self, file: File) -> tuple[int, str]:
        """What files are in order by."""
        return (file.modified_us if self.order is Order.TIME else 0, file.path)

    def is_before_end(self, file: File, until_us: int | None) -> bool:
        return until_us is None or file.modified_us <= until_us

    def check_times(self, files: Sequence[File]) -> None:
        """Raise `ConfigError` where times of files are needed and the storage does not tell them."""
        if self.order is not Order.TIME and self.until is None:
            return
        unknown = next((file.path for file in files if not file.modified_us), None)
        if unknown is not None:
            raise ConfigError(
                f"the storage does not tell when {unknown!r} was changed",
                field="order" if self.order is Order.TIME else "until",
                allowed=[] if self.until is not None else [Order.NAME],
            )

    def display(self) -> str:
        parts = [f"every {format_duration_us(self.interval_us)}"]
        if self.order:
            parts.append(f"by {self.order}, at most {format_duration_us(self.lateness_us)} late")
        if self.is_start_new:
            parts.append("none of those that are there")
        if self.until is not None:
            ends = self.until if isinstance(self.until, str) else datetime.fromtimestamp(self.until / 1e6, UTC)
            parts.append(f"until {ends}")
        if self.after_commit:
            parts.append(f"then {self.after_commit}")
        if self.grows:
            parts.append("and what is appended to files")
        return "; ".join(parts)


def check_watch(config: SourceConfig, location: Location) -> WatchSettings | None:
    """The watch of a config; None where it has none. Raises `ConfigError`."""
    if not config.HasField("watch"):
        _refuse_alone(config)
        return None
    if config.watch < 1:
        raise ConfigError("the duration must be more than zero", field="watch", value=config.watch)
    if len(config.files) == 1 and config.files[0].path == location.path:
        raise ConfigError("no other file can appear: give a folder or a glob as path", field="watch")
    after_commit = AfterCommit(_choice(config.after_commit, AfterCommit, "after_commit"))
    watch = WatchSettings(
        interval_us=config.watch,
        order=Order(_choice(config.order, Order, "order")),
        is_start_new=_choice(config.start or "all", ("all", "new"), "start") == "new",
        lateness_us=_lateness_us(config),
        max_remembered_files=_max_remembered(config),
        until=_until(config),
        after_commit=after_commit,
        archive=_archive(config, location, after_commit),
        grows=_grows(config),
    )
    watch.check_times([File(file.path, file.size, file.version, file.modified) for file in config.files])
    return watch


def _refuse_alone(config: SourceConfig) -> None:
    """Settings of a watch say nothing without one."""
    written = {
        "order": config.order,
        "start": "" if config.start == "all" else config.start,
        "until": config.until,
        "after_commit": config.after_commit,
        "archive_path": config.archive_path,
        "grow": config.grow,
        "lateness": config.HasField("lateness") and config.lateness != DEFAULT_LATENESS_US,
        "max_remembered_files": config.max_remembered_files not in (0, DEFAULT_REMEMBERED_FILES),
    }
    for field, value in written.items():
        if value:
            raise ConfigError(
                f"{field} needs watch, such as watch: 10s: without it the source has the files of its first start",
                field=field,
                value=str(getattr(config, field)),
            )


def _grows(config: SourceConfig) -> bool:
    for field in ("order", "until", "after_commit"):
        if config.grow and getattr(config, field):
            raise ConfigError(
                f"a file that grows is never read to its end: leave out {field}, or grow",
                field=field,
                value=getattr(config, field),
            )
    return bool(config.grow)


def _choice(written: str, allowed: Sequence[str] | type[StrEnum], field: str) -> str:
    choices = [str(choice) for choice in allowed if choice]
    if written and written.lower() not in choices:
        raise ConfigError(f"unknown choice {written!r}", field=field, value=written, allowed=choices)
    return written.lower()


def _lateness_us(config: SourceConfig) -> int:
    if not config.HasField("lateness"):
        return DEFAULT_LATENESS_US
    if config.lateness < 0:
        raise ConfigError("the duration must not be negative", field="lateness", value=config.lateness)
    return config.lateness


def _max_remembered(config: SourceConfig) -> int:
    if config.max_remembered_files < 0:
        raise ConfigError(
            "the number must be positive", field="max_remembered_files", value=config.max_remembered_files
        )
    return config.max_remembered_files or DEFAULT_REMEMBERED_FILES


def _until(config: SourceConfig) -> int | str | None:
    if not config.until:
        return None
    if config.until.lower() == NOW:
        return NOW
    try:
        moment = datetime.fromisoformat(config.until)
    except ValueError as error:
        raise ConfigError(
            f"{config.until!r} is not a time: write it as 2026-01-31T12:00:00Z",
            field="until",
            value=config.until,
            allowed=[NOW, "2026-01-31T12:00:00Z"],
        ) from error
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1e6)


def _archive(config: SourceConfig, location: Location, after_commit: AfterCommit) -> Location | None:
    if after_commit is not AfterCommit.ARCHIVE:
        if config.archive_path:
            raise ConfigError(
                "archive_path needs after_commit: archive", field="archive_path", value=config.archive_path
            )
        return None
    if not config.archive_path:
        raise ConfigError(
            "after_commit: archive needs a folder, such as archive_path: ./read",
            field="after_commit",
            value=config.after_commit,
        )
    archive = open_location(config.archive_path, config.storage_options, field="archive_path")
    if location.fs is None or archive.fs is None:
        return archive
    if type(archive.fs) is not type(location.fs) or archive.fs.protocol != location.fs.protocol:
        raise ConfigError(
            f"files can only be moved within one storage: path is {location.url!r}",
            field="archive_path",
            value=config.archive_path,
        )
    root = fixed_folder(location.path).rstrip("/")
    if archive.path.rstrip("/") == root or (
        archive.path.startswith(f"{root}/") and not is_hidden(f"{archive.path.rstrip('/')}/", root)
    ):
        raise ConfigError(
            "files that are moved there would be read again: choose a folder elsewhere, or one that begins with _",
            field="archive_path",
            value=config.archive_path,
        )
    return archive
