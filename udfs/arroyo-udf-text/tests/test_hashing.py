"""Hashes and pseudonyms: known values, and the same for the same."""

import hashlib
import hmac

import pyarrow as pa
import pytest
from arroyo_udf_text.hashing import pseudonym, text_hash64, text_sha256
from hypothesis import given
from hypothesis import strategies as st

TEXTS = st.lists(st.none() | st.text(), max_size=10)


def run(function, *columns):
    return function(*(pa.array(column, pa.string()) for column in columns)).to_pylist()


@given(TEXTS)
def test_sha256_is_that_of_the_bytes(texts):
    assert run(text_sha256, texts) == [t if t is None else hashlib.sha256(t.encode()).hexdigest() for t in texts]


@given(TEXTS, st.text(min_size=1))
def test_a_pseudonym_is_the_start_of_an_hmac(texts, key):
    expected = [t if t is None else hmac.new(key.encode(), t.encode(), "sha256").hexdigest()[:32] for t in texts]
    assert run(pseudonym, texts, [key] * len(texts)) == expected


def test_a_pseudonym_changes_with_the_key_of_its_row():
    one, two, again, none = run(pseudonym, ["anna", "anna", "anna", "anna"], ["k1", "k2", "k1", None])
    assert one == again != two
    assert none is None


@given(st.lists(st.tuples(st.none() | st.text(max_size=2), st.none() | st.sampled_from(["k", "é", "kk"])), max_size=20))
def test_every_row_may_have_a_key_of_its_own(rows):
    texts, keys = [row[0] for row in rows], [row[1] for row in rows]
    expected = [
        None if None in row else hmac.new(row[1].encode(), row[0].encode(), "sha256").hexdigest()[:32] for row in rows
    ]
    assert run(pseudonym, texts, keys) == expected


def test_as_many_keys_as_rows_are_possible():
    keys = [f"key-{place}" for place in range(5000)]
    assert len(set(run(pseudonym, ["anna"] * 5000, keys))) == 5000


def test_an_empty_key_is_refused():
    with pytest.raises(ValueError, match="key of a pseudonym is empty"):
        pseudonym(pa.array(["anna"]), pa.array([""]))


def test_hashes_of_64_bits_have_not_changed():
    assert run(text_hash64, ["", "a", "arroyo", "ü", None]) == [
        -5005587183354669241,
        -9164383013145295090,
        -1463193289824575021,
        3951250712542510773,
        None,
    ]


@given(TEXTS)
def test_equal_texts_have_equal_hashes_wherever_they_stand(texts):
    alone = [None if text is None else run(text_hash64, [text])[0] for text in texts]
    assert run(text_hash64, texts) == alone
