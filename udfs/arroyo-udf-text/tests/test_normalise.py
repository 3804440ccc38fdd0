"""Normalising and tokens, beside the same in plain Python."""

import re
import unicodedata

import pyarrow as pa
import pytest
from arroyo_udf_text.normalise import (
    text_casefold,
    text_normalise,
    text_slug,
    text_squeeze,
    text_strip_accents,
    text_tokens,
)
from hypothesis import given
from hypothesis import strategies as st

#: Assigned before Unicode 14, which is what the oldest Python here knows; newer characters depend on the Python.
CHARACTERS = st.one_of(
    st.characters(categories=["L", "M", "N", "P", "S", "Z", "Cc"], max_codepoint=0x2FF),
    st.sampled_from("ßİıſΣςσǅﬁﬀ①²Ⅷｱ゙が한글漢字\u0345\u0301\u0300\u1fb3\u1e9e\u2003\u2028\u3000\u200bẛ̣"),
)
TEXTS = st.lists(st.none() | st.text(CHARACTERS), max_size=8)
EVERY = [text_casefold, text_normalise, text_slug, text_squeeze, text_strip_accents, text_tokens]


def run(function, texts):
    return function(pa.array(texts, pa.string())).to_pylist()


def folded(text):
    once = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).casefold())
    return unicodedata.normalize("NFKC", once.casefold())


def words(text):
    return "".join(c if unicodedata.category(c)[0] in "LMN" else " " for c in folded(text)).split(" ")


def without_marks(text):
    bare = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
    return unicodedata.normalize("NFC", bare)


def slug(text):
    kept = "".join(c if unicodedata.category(c)[0] in "LMN" else "-" for c in without_marks(folded(text)))
    return re.sub("-+", "-", kept).strip("-")


@pytest.mark.parametrize(
    ("function", "model"),
    [
        (text_casefold, str.casefold),
        (text_squeeze, lambda text: " ".join(text.split())),
        (text_normalise, lambda text: " ".join(folded(text).split())),
        (text_strip_accents, without_marks),
        (text_tokens, lambda text: [word for word in words(text) if word]),
        (text_slug, slug),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
@given(texts=TEXTS)
def test_every_function_equals_its_model(function, model, texts):
    assert run(function, texts) == [None if text is None else model(text) for text in texts]


@given(TEXTS)
def test_normalising_again_changes_nothing(texts):
    once = run(text_normalise, texts)
    assert run(text_normalise, once) == once


@pytest.mark.parametrize(
    ("texts", "same"),
    [
        (["Straße", "STRASSE", " strasse "], "strasse"),
        (["\uff21\uff50\uff50\uff4c\uff45", "apple", "APPLE"], "apple"),
        (["e\u0301te\u0301", "été", "ÉTÉ"], "été"),
        (["ﬁne", "FINE"], "fine"),
        (["a\u00a0\t\r\n b", "A\u3000B"], "a b"),
    ],
)
def test_what_people_read_as_the_same_becomes_the_same(texts, same):
    assert run(text_normalise, texts) == [same] * len(texts)


def test_tokens_are_words_of_any_script():
    assert run(text_tokens, ["Don't stop!", "Привет, мир", "", " ... ", None, "naïve 3,5"]) == [
        ["don", "t", "stop"],
        ["привет", "мир"],
        [],
        [],
        None,
        ["naïve", "3", "5"],
    ]


def test_a_slug_fits_a_file_name():
    assert run(text_slug, ["Crème Brûlée, 2 Stück!", "--", "Łódź"]) == ["creme-brulee-2-stuck", "", "łodz"]


@pytest.mark.parametrize("function", EVERY, ids=lambda function: getattr(function, "name", ""))
def test_no_rows_only_nulls_and_slices(function):
    assert len(function(pa.array([], pa.string()))) == 0
    assert run(function, [None, None]) == [None, None]
    whole = pa.array(["x", "Ä b", None, "C"], pa.string())
    assert function(whole.slice(1, 2)).to_pylist() == function(whole).to_pylist()[1:3]
