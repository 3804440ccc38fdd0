"""For formats whose messages, and lines of files, are texts of one row each."""

from arroyo_formats.messages import check_encodable, read_texts
from arroyo_formats.text.files import LineFiles
from arroyo_formats.text.salvage import BadTextError, Look, ParsedTexts, RowParser, Texts, parse_texts

__all__ = [
    "BadTextError",
    "LineFiles",
    "Look",
    "ParsedTexts",
    "RowParser",
    "Texts",
    "check_encodable",
    "parse_texts",
    "read_texts",
]
