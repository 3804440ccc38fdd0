"""The config of a sink, checked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from arroyo_core.errors import ConfigError
from arroyo_filesystem.filesystem_pb2 import SinkConfig
from arroyo_filesystem.formats.format import Format
from arroyo_filesystem.listing import parse_format
from arroyo_filesystem.location import Location, absolute_path, open_location
from arroyo_filesystem.writers.writer import FileFormat

#: The first one is the default. Level 1 of zstd writes as fast as snappy, and two thirds of its size.
COMPRESSIONS = {
    Format.PARQUET: ("zstd", "snappy", "lz4", "gzip", "none"),
    Format.ARROW: ("none", "zstd", "lz4"),
    Format.JSON: ("none", "gzip"),
    Format.DEBEZIUM_JSON: ("none", "gzip"),
    Format.CSV: ("none", "gzip"),
}


class IfExists(StrEnum):
    """What to do when the folder has files before the first epoch."""

    APPEND = "append"
    FAIL = "fail"


class Updating(StrEnum):
    """What becomes of a stream of changes in files of rows."""

    #: It is refused.
    REFUSE = ""
    #: Rows that are added are written, those that are taken back are not.
    APPEND_ONLY = "append_only"
    #: All are written, with the column that tells them apart.
    KEEP_META = "keep_meta"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """A checked config."""

    location: Location
    file_format: FileFormat
    partition_by: tuple[str, ...]
    max_file_bytes: int
    max_open_files: int
    if_exists: IfExists
    updating: Updating


def resolve_sink(config: SinkConfig) -> SinkConfig:
    """A copy of a config with an absolute path; raises `ConfigError`."""
    if not config.path:
        raise ConfigError("path is needed", field="path")
    resolved = SinkConfig()
    resolved.CopyFrom(config)
    resolved.path = absolute_path(config.path)
    return resolved


def check_sink(config: SinkConfig) -> SinkSettings:
    """The settings of a config, resolved or not; raises `ConfigError`."""
    config = resolve_sink(config)
    location = open_location(config.path, config.storage_options, field="path")
    kind = parse_format(config.format)
    return SinkSettings(
        location=location,
        file_format=FileFormat(kind, _compression(config, kind), _delimiter(config, kind)),
        partition_by=tuple(config.partition_by),
        max_file_bytes=_positive(config.max_file_size, "max_file_size"),
        max_open_files=_positive(config.max_open_files, "max_open_files"),
        if_exists=_if_exists(config),
        updating=_updating(config, kind),
    )


def _compression(config: SinkConfig, kind: Format) -> str | None:
    allowed = COMPRESSIONS[kind]
    chosen = config.compression or allowed[0]
    if chosen not in allowed:
        raise ConfigError(
            f"{kind} files cannot be compressed with {chosen!r}", field="compression", value=chosen, allowed=allowed
        )
    return None if chosen == "none" else chosen


def _delimiter(config: SinkConfig, kind: Format) -> str:
    delimiter = config.delimiter or ","
    if config.delimiter and kind is not Format.CSV:
        raise ConfigError(f"{kind} files have no delimiter", field="delimiter", value=delimiter)
    if len(delimiter.encode()) != 1 or delimiter in '"\r\n':
        raise ConfigError(
            f"{delimiter!r} cannot be a delimiter: it must be one ASCII character, not a quote or a line end",
            field="delimiter",
            value=delimiter,
        )
    return delimiter


def _updating(config: SinkConfig, kind: Format) -> Updating:
    try:
        chosen = Updating(config.updating)
    except ValueError:
        raise ConfigError(
            f"unknown choice {config.updating!r}",
            field="updating",
            value=config.updating,
            allowed=[Updating.APPEND_ONLY, Updating.KEEP_META],
        ) from None
    if chosen and kind is Format.DEBEZIUM_JSON:
        raise ConfigError(f"{kind} files hold every change as it is", field="updating", value=config.updating)
    return chosen


def _positive(number: int, field: str) -> int:
    if number <= 0:
        raise ConfigError(f"{field} must be positive", field=field, value=number)
    return number


def _if_exists(config: SinkConfig) -> IfExists:
    try:
        return IfExists(config.if_exists)
    except ValueError:
        raise ConfigError(
            f"unknown choice {config.if_exists!r}", field="if_exists", value=config.if_exists, allowed=list(IfExists)
        ) from None
