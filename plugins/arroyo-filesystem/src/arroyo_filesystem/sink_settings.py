"""The config of a sink, checked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO

import pyarrow as pa
from arroyo_formats import FileWriter

from arroyo_core.errors import ConfigError
from arroyo_filesystem.file_names import FileNames, check_names
from arroyo_filesystem.filesystem_pb2 import SinkConfig
from arroyo_filesystem.format_choice import Beside, ChosenFormat, choose_format
from arroyo_filesystem.location import Location, absolute_path, open_location
from arroyo_filesystem.sorting import SortedWriter, SortKey

DEFAULT_HOLD_US = 300_000_000


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


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """How files are written."""

    format: ChosenFormat
    compression: str
    names: FileNames
    sort_by: tuple[SortKey, ...] = ()

    @property
    def extension(self) -> str:
        return self.format.files.full_extension(self.compression)

    def writer(self, stream: BinaryIO, schema: pa.Schema) -> FileWriter:
        writer = self.format.files.writer(self.format.settings, stream, schema, compression=self.compression)
        return SortedWriter(writer, self.sort_by) if self.sort_by else writer


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """A checked config."""

    location: Location
    written: WrittenFiles
    partition_by: tuple[str, ...]
    max_file_bytes: int
    #: None for no limit.
    max_file_rows: int | None
    #: Rows are held until there are so many; None where nothing is held.
    min_file_bytes: int | None
    max_hold_us: int
    #: Whether what is held of a folder is shown when the watermark has passed its time.
    closes_at_watermark: bool
    max_open_files: int
    max_partitions: int
    drops_bad_partitions: bool
    if_exists: IfExists
    updating: Updating


def resolve_sink(config: SinkConfig) -> SinkConfig:
    """A copy of a config with an absolute path and the resolved format; raises `ConfigError`."""
    if not config.path:
        raise ConfigError("path is needed", field="path")
    resolved = SinkConfig()
    resolved.CopyFrom(config)
    resolved.path = absolute_path(config.path)
    chosen = _format(config)
    made = chosen.resolve()
    if made.settings != chosen.settings:
        resolved.format.CopyFrom(made.choice.to_value())
        resolved.ClearField("delimiter")
    return resolved


def check_sink(config: SinkConfig) -> SinkSettings:
    """The settings of a config, resolved or not; raises `ConfigError`."""
    config = resolve_sink(config)
    location = open_location(config.path, config.storage_options, field="path")
    chosen = _format(config)
    return SinkSettings(
        location=location,
        written=WrittenFiles(chosen, _compression(config, chosen), _names(config), _sort_by(config)),
        partition_by=tuple(config.partition_by),
        max_file_bytes=_positive(config.max_file_size, "max_file_size"),
        max_file_rows=_max_file_rows(config),
        min_file_bytes=_min_file_bytes(config),
        max_hold_us=_max_hold_us(config),
        closes_at_watermark=config.close_at_watermark,
        max_open_files=_positive(config.max_open_files, "max_open_files"),
        max_partitions=_positive(config.max_partitions, "max_partitions"),
        drops_bad_partitions=_drops_bad_partitions(config),
        if_exists=_if_exists(config),
        updating=_updating(config, chosen),
    )


def _format(config: SinkConfig) -> ChosenFormat:
    delimiter = Beside("delimiter", config.delimiter, "{format} files have no delimiter")
    return choose_format(config.format, beside={"delimiter": delimiter} if config.delimiter else {})


def _compression(config: SinkConfig, chosen: ChosenFormat) -> str:
    allowed = chosen.files.compressions
    compression = config.compression.lower() or allowed[0]
    if compression not in allowed:
        raise ConfigError(
            f"{chosen.name} files cannot be compressed with {compression!r}",
            field="compression",
            value=compression,
            allowed=allowed,
        )
    return compression


def _updating(config: SinkConfig, chosen: ChosenFormat) -> Updating:
    try:
        policy = Updating(config.updating)
    except ValueError:
        raise ConfigError(
            f"unknown choice {config.updating!r}",
            field="updating",
            value=config.updating,
            allowed=[Updating.APPEND_ONLY, Updating.KEEP_META],
        ) from None
    if policy and chosen.is_updating:
        raise ConfigError(f"{chosen.name} files hold every change as it is", field="updating", value=config.updating)
    return policy


def _names(config: SinkConfig) -> FileNames:
    return check_names(config.file_prefix, config.file_name, config.partition_by)


def _sort_by(config: SinkConfig) -> tuple[SortKey, ...]:
    keys = tuple(SortKey.read(written) for written in config.sort_by)
    for index, key in enumerate(keys):
        if key.column in [other.column for other in keys[:index]]:
            raise ConfigError(f"column {key.column!r} is named twice", field=f"sort_by[{index}]", value=key.column)
    return keys


def _max_file_rows(config: SinkConfig) -> int | None:
    if config.max_file_rows < 0:
        raise ConfigError("max_file_rows must be positive", field="max_file_rows", value=config.max_file_rows)
    return config.max_file_rows or None


def _min_file_bytes(config: SinkConfig) -> int | None:
    if config.min_file_size < 0:
        raise ConfigError("min_file_size must be positive", field="min_file_size", value=config.min_file_size)
    if config.min_file_size > config.max_file_size:
        raise ConfigError(
            "min_file_size must not be above max_file_size, at which a file ends",
            field="min_file_size",
            value=config.min_file_size,
        )
    is_holding = config.min_file_size or config.HasField("max_hold") or config.close_at_watermark
    return (config.min_file_size or config.max_file_size) if is_holding else None


def _max_hold_us(config: SinkConfig) -> int:
    if not config.HasField("max_hold"):
        return DEFAULT_HOLD_US
    if config.max_hold < 1:
        raise ConfigError("the duration must be more than zero", field="max_hold", value=config.max_hold)
    return config.max_hold


def _positive(number: int, field: str) -> int:
    if number <= 0:
        raise ConfigError(f"{field} must be positive", field=field, value=number)
    return number


def _drops_bad_partitions(config: SinkConfig) -> bool:
    policy = config.bad_partitions.lower()
    if policy not in ("fail", "drop"):
        raise ConfigError(f"unknown policy {policy!r}", field="bad_partitions", value=policy, allowed=["fail", "drop"])
    return policy == "drop"


def _if_exists(config: SinkConfig) -> IfExists:
    try:
        return IfExists(config.if_exists)
    except ValueError:
        raise ConfigError(
            f"unknown choice {config.if_exists!r}", field="if_exists", value=config.if_exists, allowed=list(IfExists)
        ) from None
