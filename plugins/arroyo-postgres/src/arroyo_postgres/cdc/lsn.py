"""Positions in the write-ahead log, as PostgreSQL writes them: `16/B374D848`."""

from __future__ import annotations


def parse_lsn(text: str) -> int:
    """Raises `ValueError`."""
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def format_lsn(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
