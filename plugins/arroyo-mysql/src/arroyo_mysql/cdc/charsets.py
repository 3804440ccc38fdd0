"""Character sets of MySQL: what their bytes mean, as the server has it. Pure.

Some of Python's codecs have a few characters at other places: these are given here, as MariaDB 10.11 converts them.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping

#: What is said of a column.
UNREADABLE_CHARSET = "which cannot be read from the binlog: convert it to utf8mb4, or leave it out with columns: [...]"

_UTF8 = frozenset({"utf8", "utf8mb3", "utf8mb4", "ascii"})
#: What Python calls them. No gb18030 and no eucjpms, which are not the same there.
_CODECS = {
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "tis620": "tis_620",
    "ucs2": "utf_16_be",
    "utf16": "utf_16_be",
    "utf16le": "utf_16_le",
    "utf32": "utf_32_be",
    "big5": "big5",
    "gbk": "gbk",
    "gb2312": "gb2312",
    "euckr": "cp949",
    "sjis": "shift_jis",
    "cp932": "cp932",
    "ujis": "euc_jp",
}
#: Characters that are not those of the codec.
_OTHERS: dict[str, dict[bytes, str]] = {
    # Control characters where Python has nothing.
    "latin1": {bytes([byte]): chr(byte) for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)},
    "greek": {b"\xa1": "\u02bd", b"\xa2": "\u02bc"},
    "hebrew": {b"\xaf": "\u203e"},
    "koi8u": {b"\x95": "\u2022"},
    "cp866": {b"\xfc": "\u207f", b"\xfd": "\u00b2"},
    # The server has no characters for these.
    "big5": dict.fromkeys(map(bytes.fromhex, ("a15a", "a1c3", "a1c5", "a1fe", "a240", "a2cc", "a2ce")), "\ufffd"),
    "sjis": {b"\x81\x5f": "\\"},
    "ujis": {b"\xa1\xc0": "\\"},
}


def is_utf8(charset: str) -> bool:
    return charset in _UTF8


def is_readable(charset: str) -> bool:
    """Whether texts of a character set can be read from the binlog."""
    return charset in _UTF8 or charset in _CODECS


def decoder_of(charset: str) -> Callable[[bytes], str] | None:
    """What raises `UnicodeDecodeError` for bytes that mean nothing; None for a character set that is not read."""
    codec = "utf-8" if charset in _UTF8 else _CODECS.get(charset)
    if codec is None:
        return None
    others = _OTHERS.get(charset, {})

    def decode(value: bytes) -> str:
        if any(each in value for each in others):
            return _decode_each(value, codec, others)
        return value.decode(codec)

    return decode


def _decode_each(value: bytes, codec: str, others: Mapping[bytes, str]) -> str:
    """Character by character: bytes of two that stand side by side may look like another one."""
    text, begin = "", 0
    while begin < len(value):
        decoder = codecs.getincrementaldecoder(codec)()
        for end in range(begin + 1, len(value) + 1):
            raw = value[begin:end]
            found = others.get(raw) or decoder.decode(raw[-1:], final=end == len(value))
            if found:
                text += found
                begin = end
                break
    return text
