"""Which formats there are and how names of files tell them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import PurePosixPath


class Format(StrEnum):
    """The format of a file's content."""

    PARQUET = "parquet"
    JSON = "json"
    DEBEZIUM_JSON = "debezium_json"
    CSV = "csv"
    ARROW = "arrow"

    @property
    def is_text(self) -> bool:
        """Whether files consist of lines, which can be bad one by one and compressed as a whole."""
        return self in (Format.JSON, Format.DEBEZIUM_JSON, Format.CSV)

    @property
    def extension(self) -> str:
        """What the sink puts at the end of names."""
        return "jsonl" if self.named is Format.JSON else str(self)

    @property
    def named(self) -> Format:
        """The format that the name of such a file tells: changes are in files of JSON lines."""
        return Format.JSON if self is Format.DEBEZIUM_JSON else self


EXTENSIONS = {
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".json": Format.JSON,
    ".jsonl": Format.JSON,
    ".ndjson": Format.JSON,
    ".csv": Format.CSV,
    ".arrow": Format.ARROW,
    ".ipc": Format.ARROW,
    ".feather": Format.ARROW,
}
#: The extensions that fsspec opens with `compression="infer"`; text formats only.
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".xz": "xz"}


def compression_of(path: str) -> str | None:
    """How a text file is compressed, by its name."""
    return COMPRESSIONS.get(PurePosixPath(path).suffix.lower())


def format_of(path: str) -> Format | None:
    """The format that a name tells, looking through a compression suffix; None where it tells none."""
    name = PurePosixPath(path)
    if compression_of(path):
        found = EXTENSIONS.get(PurePosixPath(name.stem).suffix.lower())
        return found if found is not None and found.is_text else None
    return EXTENSIONS.get(name.suffix.lower())
