"""Masks of personal data: what is left may be shown, and does not give the rest back."""

from __future__ import annotations

import re
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.udf import udf
from arroyo_udf_text.digits import CARD_DIGITS, has_check_digit, hide_digits

_ADDRESS = r"[\p{L}\p{M}\p{N}.!#$%&'*+/=?^_`{|}~-]+@[\p{L}\p{M}\p{N}-]+(?:\.[\p{L}\p{M}\p{N}-]+)+"
_PHONE = r"(?:\+|\b00)[0-9](?:[ ()./-]{0,3}[0-9]){6,14}\b|\(?\b[0-9]{3}\)?[ .-][0-9]{3}[ .-][0-9]{4}\b"
_LONG_NUMBER = r"[0-9](?:[ -]?[0-9]){11}"
_DIGIT_GROUPS = re.compile(r"[0-9]+(?:[ -][0-9]+)*")


@udf(arguments=[pa.string()], returns=pa.string())
def mask_email(address: pa.Array) -> pa.Array:
    """'anna@example.com' becomes 'a***@example.com'; of a name under three characters nothing stays.

    What is not an address becomes '***'.
    """
    masked = pc.replace_substring_regex(address, r"(?s)^.*@([^@]*)$", r"***@\1")
    first = pc.replace_substring_regex(address, r"(?s)^\s*([^\s@])[^@]{2,}@([^@]*)$", r"\1***@\2")
    is_long = pc.match_substring_regex(address, r"(?s)^\s*[^\s@][^@]{2,}@[^@]*$")
    has_sign = pc.match_substring(address, "@")
    return pc.case_when(pc.make_struct(is_long, has_sign, address.is_valid()), first, masked, pa.scalar("***"))


@udf(arguments=[pa.string()], returns=pa.string())
def mask_phone(number: pa.Array) -> pa.Array:
    """Every digit but the last two becomes '*', every one where there are less than six; the rest stays."""
    return hide_digits(number, keep=2, fewest=6)


@udf(arguments=[pa.string()], returns=pa.string())
def mask_card(number: pa.Array) -> pa.Array:
    """Every digit but the last four becomes '*', every one where there are less than twelve; the rest stays."""
    return hide_digits(number, keep=4, fewest=CARD_DIGITS.start)


@udf(arguments=[pa.string()], returns=pa.bool_())
def card_is_valid(number: pa.Array) -> pa.Array:
    """Whether it has 12 to 19 digits, spaces and hyphens between them at most, and the last one is right (Luhn)."""
    return has_check_digit(number)


@udf(arguments=[pa.string()], returns=pa.string())
def text_redact(text: pa.Array) -> pa.Array:
    """Free text with e-mail addresses, card numbers and phone numbers replaced by [email], [card] and [phone].

    A net with holes: it finds what looks like one, not what is one. Phone numbers are found with '+' or '00' in
    front, or as 555-123-4567.
    """
    without_cards = _redact_cards(pc.replace_substring_regex(text, _ADDRESS, "[email]"))
    return pc.replace_substring_regex(without_cards, _PHONE, "[phone]")


def _redact_cards(texts: pa.Array) -> pa.Array:
    """Only texts with enough digits are looked at one by one: a regular expression cannot check a check digit."""
    is_candidate = pc.fill_null(pc.match_substring_regex(texts, _LONG_NUMBER), False)
    if not pc.any(is_candidate).as_py():
        return texts
    redacted = [_DIGIT_GROUPS.sub(_redact_groups, text) for text in texts.filter(is_candidate).to_pylist()]
    return pc.replace_with_mask(texts, is_candidate, pa.array(redacted, texts.type))


def _redact_groups(found: re.Match[str]) -> str:
    """Redact the longest card numbers that begin and end with a group of digits.

    Other numbers may stand before and after one: '12 4111 1111 1111 1111'.
    """
    text = found[0]
    bounds = [-1, *(place for place, character in enumerate(text) if character in " -"), len(text)]
    groups = [(left + 1, right) for left, right in pairwise(bounds)]
    parts, position = "", 0
    first = 0
    while first < len(groups):
        last = _card_end(text, groups, first)
        if last is None:
            first += 1
            continue
        parts += text[position : groups[first][0]] + "[card]"
        position, first = groups[last][1], last + 1
    return parts + text[position:]


def _card_end(text: str, groups: list[tuple[int, int]], first: int) -> int | None:
    """The last group of the longest card number that begins with group `first`."""
    ends = [place for place in range(first, len(groups)) if _is_card(text[groups[first][0] : groups[place][1]])]
    return max(ends, default=None)


def _is_card(number: str) -> bool:
    if len(number) < CARD_DIGITS.start:
        return False
    digits = [int(digit) for digit in reversed(number) if digit.isdigit()]
    doubled = [digit if place % 2 == 0 else digit * 2 - 9 * (digit > 4) for place, digit in enumerate(digits)]
    return len(digits) in CARD_DIGITS and sum(doubled) % 10 == 0
