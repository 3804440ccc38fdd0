"""How rows are written, for every connector: formats of messages and of files, found by name."""

from arroyo_formats.bad_data import BadData, read_policy
from arroyo_formats.choice import FormatChoice, file_formats, find_format, installed_formats, is_chosen, read_choice
from arroyo_formats.conform import conform
from arroyo_formats.files import (
    TO_THE_END,
    WHOLE_FILE,
    BadRow,
    DamagedFileError,
    FileFormat,
    FileReader,
    FileWriter,
    OnBad,
    check_writable,
    open_for_reading,
)
from arroyo_formats.format import BadMessage, Decoded, Encoded, Format, Indices, MessageReader, MessageWriter
from arroyo_formats.schemas import read_schema
from arroyo_formats.type_names import TypeNameError, parse_type

__all__ = [
    "TO_THE_END",
    "WHOLE_FILE",
    "BadData",
    "BadMessage",
    "BadRow",
    "DamagedFileError",
    "Decoded",
    "Encoded",
    "FileFormat",
    "FileReader",
    "FileWriter",
    "Format",
    "FormatChoice",
    "Indices",
    "MessageReader",
    "MessageWriter",
    "OnBad",
    "TypeNameError",
    "check_writable",
    "conform",
    "file_formats",
    "find_format",
    "installed_formats",
    "is_chosen",
    "open_for_reading",
    "parse_type",
    "read_choice",
    "read_policy",
    "read_schema",
]
