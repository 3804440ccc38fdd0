"""Masks hide what they promise to hide."""

import re

import pyarrow as pa
import pytest
from arroyo_udf_text.masking import card_is_valid, mask_card, mask_email, mask_phone, text_redact
from hypothesis import given
from hypothesis import strategies as st

TEXTS = st.lists(st.none() | st.text(st.sampled_from("0123456789- +()a@.é٣４\n")), max_size=8)
CARDS = ["4111 1111 1111 1111", "5500-0000-0000-0004", "340000000000009", "6011000000000004"]


def run(function, texts):
    return function(pa.array(texts, pa.string())).to_pylist()


def is_card(text):
    """Luhn, by hand."""
    digits = re.sub(r"[\s-]", "", text)
    if not re.fullmatch("[0-9]{12,19}", digits):
        return False
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (2 if place % 2 else 1)
        total += number // 10 + number % 10
    return total % 10 == 0


def hidden(text, keep, fewest):
    digits = [place for place, character in enumerate(text) if character.isdecimal()]
    shown = digits[len(digits) - keep :] if len(digits) >= fewest else []
    return "".join(
        (str(int(character)) if place in shown else "*") if place in digits else character
        for place, character in enumerate(text)
    )


@given(TEXTS)
def test_masked_numbers_equal_their_model(texts):
    assert run(mask_phone, texts) == [None if text is None else hidden(text, 2, 6) for text in texts]
    assert run(mask_card, texts) == [None if text is None else hidden(text, 4, 12) for text in texts]


@given(st.lists(st.none() | st.from_regex(r"[0-9 -]{10,24}|4[0-9]{15}", fullmatch=True), max_size=20))
def test_the_check_digit_equals_its_model(texts):
    assert run(card_is_valid, texts) == [None if text is None else is_card(text) for text in texts]


def test_known_cards_are_valid_and_their_neighbours_are_not():
    assert run(card_is_valid, CARDS) == [True] * len(CARDS)
    assert run(card_is_valid, [card[:-1] + str((int(card[-1]) + 1) % 10) for card in CARDS]) == [False] * len(CARDS)
    assert run(card_is_valid, ["", "4111x1111", None, "0" * 20, "٤" * 16]) == [False, False, None, False, False]


def test_numbers_keep_their_shape():
    assert run(mask_phone, ["+49 (30) 123-4567", "12345", "+4930\u0661\u0662\u0663\u0664", None]) == [
        "+** (**) ***-**67",
        "*****",
        "+******34",
        None,
    ]
    assert run(mask_card, ["4111 1111 1111 1111", "4111"]) == ["**** **** **** 1111", "****"]


@pytest.mark.parametrize(
    ("address", "masked"),
    [
        ("anna.smith@example.com", "a***@example.com"),
        ("ab@example.com", "***@example.com"),
        (" ü.b.c@example.com", "ü***@example.com"),
        ('"odd@name"@example.com', "***@example.com"),
        ("nobody", "***"),
        ("", "***"),
        ("anna\nsmith@example.com", "a***@example.com"),
        (None, None),
    ],
)
def test_an_address_keeps_its_domain(address, masked):
    assert run(mask_email, [address]) == [masked]


@given(st.lists(st.none() | st.text(st.sampled_from("ab@.é \n"), max_size=12), max_size=8))
def test_of_the_name_at_most_the_first_character_is_shown(texts):
    for text, masked in zip(texts, run(mask_email, texts), strict=True):
        if text is None:
            assert masked is None
            continue
        name, sign, domain = text.rpartition("@")
        shown = f"{sign}{domain}" if sign else ""
        assert masked in (f"***{shown}", f"{name.strip()[:1]}***{shown}")


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("write to Anna.Smith+x@mail.example.com, please", "write to [email], please"),
        ("card 4111 1111 1111 1111 exp 12/27", "card [card] exp 12/27"),
        ("order 12 4111 1111 1111 1111 33", "order 12 [card] 33"),
        ("4111111111111111,5500-0000-0000-0004", "[card],[card]"),
        ("no card: 4111 1111 1111 1112", "no card: 4111 1111 1111 1112"),
        ("call +49 30 1234567 or (555) 123-4567.", "call [phone] or [phone]."),
        ("call 0049 30 1234567", "call [phone]"),
        ("on 2024-01-15 at 12:30 we sold 1234567 pieces", "on 2024-01-15 at 12:30 we sold 1234567 pieces"),
        ("", ""),
        (None, None),
    ],
)
def test_free_text_is_redacted(text, redacted):
    assert run(text_redact, [text]) == [redacted]


@given(st.text(st.sampled_from("ab .,\n")), st.sampled_from(CARDS), st.text(st.sampled_from("ab .,\n")))
def test_no_card_survives_among_words(before, card, after):
    assert run(text_redact, [before + card + after]) == [before + "[card]" + after]


@pytest.mark.parametrize("function", [card_is_valid, mask_card, mask_email, mask_phone, text_redact])
def test_no_rows_and_slices(function):
    assert len(function(pa.array([], pa.string()))) == 0
    whole = pa.array(["x", "+49 30 123456", None, "a1234567@b.c", "4111111111111111"])
    assert function(whole.slice(1, 3)).to_pylist() == function(whole).to_pylist()[1:4]
