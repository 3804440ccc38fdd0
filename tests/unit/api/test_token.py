"""The order of tokens, by which stores refuse drivers that come too late."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core import CommitToken

numbers = st.integers(0, 5)


@given(numbers, numbers, numbers, numbers)
def test_tokens_of_an_incarnation_are_ordered_by_generation_and_then_by_epoch(generation, epoch, other, other_epoch):
    one, two = CommitToken("a1", generation, epoch), CommitToken("a1", other, other_epoch)
    pair = ((generation, epoch), (other, other_epoch))
    assert (one < two) is (pair[0] < pair[1])
    assert (one <= two) is (pair[0] <= pair[1])
    assert (one > two) is (pair[0] > pair[1])
    assert (one >= two) is (pair[0] >= pair[1])
    assert (one == two) is (pair[0] == pair[1])


def test_a_driver_that_took_over_is_newer_whatever_the_epoch():
    assert CommitToken("a1", 1, 9) < CommitToken("a1", 2, 3)


@pytest.mark.parametrize("compare", ["__lt__", "__le__", "__gt__", "__ge__"])
def test_tokens_of_two_incarnations_have_no_order(compare):
    one, two = CommitToken("a1", 1, 1), CommitToken("b2", 1, 1)
    with pytest.raises(ValueError, match="'a1' and 'b2' have no order"):
        getattr(one, compare)(two)
    assert one != two


def test_a_token_is_compared_with_tokens_only():
    with pytest.raises(TypeError):
        _ = CommitToken("a1", 1, 1) < (1, 1)


def test_a_token_is_a_value():
    token = CommitToken("a1", 1, 2)
    assert pickle.loads(pickle.dumps(token)) == token
    assert len({token, CommitToken("a1", 1, 2)}) == 1
    with pytest.raises(FrozenInstanceError):
        token.epoch = 3
