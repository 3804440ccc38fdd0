"""What a sink calls its files: a pattern whose names cannot meet.

A file that gets the name of another one replaces it. Epochs are run again, by a retry, after a crash or from an older
checkpoint (`--from-epoch`), jobs change their parallelism, and several jobs may share a folder: only what is random
tells all of these apart. So a pattern has `{uuid}`, or `{unique}` beside what makes 32 random bits enough.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from arroyo_core.errors import ConfigError
from arroyo_filesystem.compacted import MARK

FIELD = "file_name"
DEFAULT_PREFIX = "part"
DEFAULT_PATTERN = "{prefix}-{epoch}-{subtask}-{part}-{unique}"
#: What may be in braces, and how long it gets.
FIELD_LENGTHS = {"prefix": 40, "time": 16, "epoch": 12, "subtask": 5, "part": 6, "unique": 8, "uuid": 32}
PARTITION = "partition"
#: Of these one set has to be in a pattern.
TELLING = (("uuid",), ("epoch", "subtask", "part", "unique"))
#: The longest name that a pattern may make, without the extension and without folders that it repeats.
MAX_LENGTH = 84
_TOKEN = re.compile(r"\{([^{}]*)\}")
_TEXT = re.compile(r"[A-Za-z0-9_.=,~-]*")


@dataclass(frozen=True, slots=True)
class FileNames:
    """Names files by a checked pattern."""

    prefix: str = DEFAULT_PREFIX
    pattern: str = DEFAULT_PATTERN

    @property
    def repeats_folder(self) -> bool:
        """Whether names contain that of their folder."""
        return f"{{{PARTITION}}}" in self.pattern

    def name(self, *, epoch: int, subtask: int, part: int, unique: str, folder: str, now_us: int) -> str:
        """The name of a file without its extension; `unique` are 32 random hexadecimal digits."""
        return self.pattern.format(
            prefix=self.prefix,
            partition=folder.replace("/", ","),
            time=datetime.fromtimestamp(now_us / 1e6, UTC).strftime("%Y%m%dT%H%M%SZ"),
            epoch=f"{epoch:05}",
            subtask=f"{subtask:03}",
            part=part,
            unique=unique[:8],
            uuid=unique,
        )


def check_names(prefix: str, pattern: str, partition_by: Sequence[str]) -> FileNames:
    """The names of a config, where empty means the default; raises `ConfigError`."""
    names = FileNames(prefix or DEFAULT_PREFIX, pattern or DEFAULT_PATTERN)
    if not re.fullmatch("[a-z]{1,40}", names.prefix):
        raise ConfigError("it has 1 to 40 small letters: a to z", field="file_prefix", value=prefix)
    fields = _TOKEN.findall(names.pattern)
    _check_fields(names.pattern, fields, partition_by)
    _check_text(names.pattern)
    if MARK in f"{names.pattern}.":
        raise ConfigError(
            f"{MARK!r} in a name is for files that `arroyo files compact` writes", field=FIELD, value=pattern
        )
    if not any(set(telling) <= set(fields) for telling in TELLING):
        raise ConfigError(
            "two files could have one name, and one of them would be lost, where an epoch is run again or the "
            "parallelism changes: the pattern needs {uuid}, or all of {epoch}, {subtask}, {part} and {unique}",
            field=FIELD,
            value=pattern,
        )
    length = len(_TOKEN.sub("", names.pattern)) + sum(FIELD_LENGTHS.get(field, 0) for field in fields)
    if fields.count("prefix"):
        length -= fields.count("prefix") * (FIELD_LENGTHS["prefix"] - len(names.prefix))
    if length > MAX_LENGTH:
        raise ConfigError(
            f"names would have up to {length} characters, {MAX_LENGTH} are allowed", field=FIELD, value=pattern
        )
    return names


def _check_fields(pattern: str, fields: Sequence[str], partition_by: Sequence[str]) -> None:
    for field in fields:
        if field not in FIELD_LENGTHS and field != PARTITION:
            raise ConfigError(
                f"there is no {{{field}}}",
                field=FIELD,
                value=pattern,
                allowed=[f"{{{name}}}" for name in (*FIELD_LENGTHS, PARTITION)],
            )
    if fields.count(PARTITION) > 1:
        raise ConfigError("{partition} may stand there once", field=FIELD, value=pattern)
    if PARTITION in fields and not partition_by:
        raise ConfigError("{partition} needs partition_by", field=FIELD, value=pattern)


def _check_text(pattern: str) -> None:
    for text in _TOKEN.split(pattern)[::2]:
        if not _TEXT.fullmatch(text):
            raise ConfigError(
                f"names have letters, digits and any of _ . = , ~ - beside what is in braces, not {text!r}; folders "
                "come from partition_by, the extension from the format",
                field=FIELD,
                value=pattern,
            )
    if not re.match("[A-Za-z0-9{]", pattern) or pattern.startswith(f"{{{PARTITION}}}"):
        # The name of a folder begins with that of a column.
        raise ConfigError(
            f"a name begins with a letter, a digit or a field other than {{{PARTITION}}}: readers do not see names "
            "that begin with _ or .",
            field=FIELD,
            value=pattern,
        )
