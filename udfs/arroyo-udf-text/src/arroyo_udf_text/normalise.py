"""One form for texts that people read as the same: Unicode forms, case, accents and white space."""

from __future__ import annotations

from unicodedata import normalize

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.udf import udf
from arroyo_udf_text.columns import each_text, on_other_than_ascii

# Both match only what has to become one space, and pass over single spaces: several times faster where those prevail.
#: What `str.split` splits at. RE2's own `\s` knows ASCII only.
_SPACES = (
    r"[\t-\r\x1c-\x20\x{85}\p{Z}]{2,}"
    r"|[\t-\r\x1c-\x1f\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]"
)
_BETWEEN_WORDS = r"[^\p{L}\p{M}\p{N}]{2,}|[^\p{L}\p{M}\p{N} ]"
_MARKS = r"\p{Mn}+"


@udf(arguments=[pa.string()], returns=pa.string())
def text_normalise(text: pa.Array) -> pa.Array:
    """Compatibility form (NFKC), case folded, white space squeezed: for keys and comparisons."""
    return squeeze(compatible_folded(text))


@udf(arguments=[pa.string()], returns=pa.string())
def text_casefold(text: pa.Array) -> pa.Array:
    """Full case folding, as Python's `str.casefold`: 'Straße' and 'STRASSE' become 'strasse'."""
    return casefold(text)


@udf(arguments=[pa.string()], returns=pa.string())
def text_squeeze(text: pa.Array) -> pa.Array:
    """Every run of white space, line ends too, becomes one space; none at both ends."""
    return squeeze(text)


@udf(arguments=[pa.string()], returns=pa.string())
def text_strip_accents(text: pa.Array) -> pa.Array:
    """Without accents and other marks: 'Crème' becomes 'Creme'. Letters of their own, like 'ø', stay."""
    return strip_accents(text)


@udf(arguments=[pa.string()], returns=pa.string())
def text_slug(text: pa.Array) -> pa.Array:
    """For file names and URLs: words folded, without accents, joined by hyphens; may be empty."""
    return pc.replace_substring(_spaced_words(strip_accents(compatible_folded(text))), " ", "-")


@udf(arguments=[pa.string()], returns=pa.list_(pa.string()))
def text_tokens(text: pa.Array) -> pa.Array:
    """The words, normalised: runs of letters, marks and digits. A text without any has an empty list.

    Scripts that do not write spaces between words (Chinese, Thai) give one token for a whole run.
    """
    words = _spaced_words(compatible_folded(text))
    tokens = pc.split_pattern(words, " ")
    is_empty = pc.fill_null(pc.equal(words, ""), False)
    if not pc.any(is_empty).as_py():
        return tokens
    return pc.if_else(is_empty, pa.scalar([], tokens.type), tokens)


def squeeze(texts: pa.Array) -> pa.Array:
    return pc.ascii_trim(pc.replace_substring_regex(texts, _SPACES, " "), " ")


def casefold(texts: pa.Array) -> pa.Array:
    # Arrow has no case folding. It is the lower case of ASCII, so that only other texts need a call each.
    return on_other_than_ascii(pc.ascii_lower(texts), each_text(str.casefold))


def compatible_folded(texts: pa.Array) -> pa.Array:
    """The form for caseless comparison by compatibility (Unicode's definition D146), composed."""
    return on_other_than_ascii(pc.ascii_lower(texts), each_text(_compatible_folded))


def strip_accents(texts: pa.Array) -> pa.Array:
    return on_other_than_ascii(texts, _without_marks)


def _compatible_folded(text: str) -> str:
    once = normalize("NFKC", normalize("NFD", text).casefold())
    again = once.casefold()
    return once if again == once else normalize("NFKC", again)


def _without_marks(texts: pa.Array) -> pa.Array:
    bare = pc.replace_substring_regex(pc.utf8_normalize(texts, form="NFD"), _MARKS, "")
    return pc.utf8_normalize(bare, form="NFC")


def _spaced_words(texts: pa.Array) -> pa.Array:
    return pc.ascii_trim(pc.replace_substring_regex(texts, _BETWEEN_WORDS, " "), " ")
