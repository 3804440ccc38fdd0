"""Percent-encoding, as queries of URLs have it."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.udf import udf
from arroyo_udf_text.columns import bytes_of, texts_of

_PERCENT = ord("%")
#: The value of each byte as a hexadecimal digit; 255 for what is none.
_HEX = np.full(256, 255, dtype=np.uint8)
for _digit in "0123456789abcdefABCDEF":
    _HEX[ord(_digit)] = int(_digit, 16)


@udf(arguments=[pa.string()], returns=pa.string())
def url_decode(text: pa.Array) -> pa.Array:
    """Percent-encoding undone, '+' as a space. What is not UTF-8 becomes '\ufffd'; a '%' without two digits stays."""
    return decode(text)


def decode(texts: pa.Array) -> pa.Array:
    spaced = pc.replace_substring(texts, "+", " ")
    if not pc.any(pc.match_substring(spaced, "%")).as_py():
        return spaced
    data, offsets = bytes_of(spaced)
    places = np.flatnonzero(data == _PERCENT)
    # An encoded byte ends within its own text.
    ends = offsets[np.searchsorted(offsets, places, side="right")]
    places = places[places + 2 < ends]
    high, low = _HEX[data[places + 1]], _HEX[data[places + 2]]
    is_encoded = (high < 16) & (low < 16)
    places = places[is_encoded]
    data[places] = high[is_encoded] * 16 + low[is_encoded]
    stays = np.ones(len(data), dtype=np.bool_)
    stays[places + 1] = False
    stays[places + 2] = False
    decoded = texts_of(data[stays], offsets - 2 * np.searchsorted(places, offsets), spaced)
    return decoded if _is_utf8(decoded) else _decode_each(spaced)


def encoded_pattern(text: str) -> str:
    """A regular expression for every way to write this text in a query: each byte as it is or encoded."""
    return "".join(_character_pattern(character, text[place + 1 : place + 3]) for place, character in enumerate(text))


def _character_pattern(character: str, following: str) -> str:
    encoded = "".join(f"%(?i:{byte:02x})" for byte in character.encode())
    plain = r"\+|\x20" if character == " " else re.escape(character)
    # A bare '+' is a space, a bare '&' or '=' ends a name, and a bare '%' before two digits is another character:
    # they are found only where they are encoded.
    is_other = character in "+&=" or (character == "%" and re.fullmatch("[0-9A-Fa-f]{2}", following) is not None)
    return encoded if is_other else f"(?:{plain}|{encoded})"


def _is_utf8(texts: pa.Array) -> bool:
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _decode_each(texts: pa.Array) -> pa.Array:
    """Text by text: only for a batch where some text is not UTF-8 once it is decoded."""
    decoded = [None if text is None else unquote_to_bytes(text).decode(errors="replace") for text in texts.to_pylist()]
    return pa.array(decoded, pa.string())
