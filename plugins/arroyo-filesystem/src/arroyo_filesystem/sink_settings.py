"""The config of a sink, checked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO

import pyarrow as pa
from arroyo_formats import FileWriter

from arroyo_core.errors import ConfigError
from arroyo_filesystem.filesystem_pb2 import SinkConfig
from arroyo_filesystem.format_choice import Beside, ChosenFormat, choose_format
from arroyo_filesystem.location import Location, absolute_path, open_location


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

    @property
    def extension(self) -> str:
        return self.format.files.full_extension(self.compression)

    def writer(self, stream: BinaryIO, schema: pa.Schema) -> FileWriter:
        return self.format.files.writer(self.format.settings, stream, schema, compression=self.compression)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """A checked config."""

    location: Location
    written: WrittenFiles
    partition_by: tuple[str, ...]
    max_file_bytes: int
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
        written=WrittenFiles(chosen, _compression(config, chosen)),
        partition_by=tuple(config.partition_by),
        max_file_bytes=_positive(config.max_file_size, "max_file_size"),
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
