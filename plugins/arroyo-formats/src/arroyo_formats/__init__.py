"""How rows are written, for every connector: formats of messages and of files, found by name."""

from arroyo_formats.choice import FormatChoice, find_format, installed_formats, read_choice
from arroyo_formats.format import BadMessage, Decoded, Encoded, Format, Indices, MessageReader, MessageWriter

__all__ = [
    "BadMessage",
    "Decoded",
    "Encoded",
    "Format",
    "FormatChoice",
    "Indices",
    "MessageReader",
    "MessageWriter",
    "find_format",
    "installed_formats",
    "read_choice",
]
