"""The rules of the Nexmark generator, over the columns as they come out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from arroyo_nexmark.randomness import column_key, draw, price
from arroyo_nexmark.rules import Kind, Rules
from arroyo_nexmark.tables import TABLES, make_batch
from arroyo_nexmark.text import exact_text, extra_lengths, join_text, spaced_text
from hypothesis import given, settings
from hypothesis import strategies as st

EVENTS = 200_000


def table_of(name: str, rules: Rules | None = None, events: int = EVENTS) -> pa.RecordBatch:
    rules = rules or Rules()
    table = TABLES[name]
    numbers = np.arange(events, dtype=np.int64)
    if table.kind is not None:
        numbers = numbers[rules.kinds(numbers) == table.kind]
    return make_batch(table, table.schema, rules, numbers)


def test_of_every_fifty_events_one_is_a_person_three_are_auctions_and_the_rest_bids():
    kinds = Rules().kinds(np.arange(1000, dtype=np.int64))
    assert kinds[:50].tolist() == [Kind.PERSON] + [Kind.AUCTION] * 3 + [Kind.BID] * 46
    assert np.array_equal(kinds, np.tile(kinds[:50], 20))


def test_ids_of_people_and_auctions_count_up_without_gaps():
    assert table_of("person")["id"].to_pylist() == list(range(1000, 1000 + EVENTS // 50))
    assert table_of("auction")["id"].to_pylist() == list(range(1000, 1000 + EVENTS // 50 * 3))


def test_event_time_advances_by_the_event_rate_from_the_base_time():
    times = table_of("event", Rules(event_rate=3, base_time_us=10), events=7)["date_time"].cast(pa.int64())
    assert times.to_pylist() == [10, 333_343, 666_676, 1_000_010, 1_333_343, 1_666_676, 2_000_010]


def test_event_time_does_not_overflow_for_late_events():
    number = np.array([9 * 10**15], dtype=np.int64)
    assert Rules(event_rate=10**6, base_time_us=5).event_time_us(number).tolist() == [9 * 10**15 + 5]


def test_bids_refer_to_auctions_in_flight_or_about_to_be():
    rules = Rules(in_flight_auctions=20)
    numbers = np.arange(EVENTS, dtype=np.int64)
    last = rules.last_auction(numbers[rules.kinds(numbers) == Kind.BID])
    auction = table_of("bid", rules)["auction"].to_numpy() - 1000
    is_hot = auction == last // 100 * 100
    others, their_last = auction[~is_hot], last[~is_hot]
    assert (others >= np.maximum(their_last - 20, 0)).all()
    assert (others <= their_last + 10).all()
    assert (others == np.maximum(their_last - 20, 0)).any()
    assert (others == their_last + 10).any()


def test_bidders_and_sellers_are_active_people_or_about_to_be():
    rules = Rules(active_people=30)
    numbers = np.arange(EVENTS, dtype=np.int64)
    for table, column, hot_place in (("bid", "bidder", 1), ("auction", "seller", 0)):
        last = rules.last_person(numbers[rules.kinds(numbers) == TABLES[table].kind])
        person = table_of(table, rules)[column].to_numpy() - 1000
        is_hot = person == last // 100 * 100 + hot_place
        assert (person[~is_hot] >= np.maximum(last[~is_hot] - 29, 0)).all()
        assert (person[~is_hot] <= last[~is_hot] + 10).all()


@pytest.mark.parametrize(
    ("table", "column", "option", "ratio"),
    [
        ("bid", "auction", "hot_auction_ratio", 2),
        ("bid", "auction", "hot_auction_ratio", 10),
        ("bid", "bidder", "hot_bidder_ratio", 4),
        ("auction", "seller", "hot_seller_ratio", 4),
    ],
)
def test_hot_ones_get_all_but_one_in_ratio(table: str, column: str, option: str, ratio: int):
    rules = Rules(**{option: ratio})
    numbers = np.arange(EVENTS, dtype=np.int64)
    numbers = numbers[rules.kinds(numbers) == TABLES[table].kind]
    last = rules.last_auction(numbers) if column == "auction" else rules.last_person(numbers)
    hot = last // 100 * 100 + (1 if column == "bidder" else 0)
    share = (table_of(table, rules)[column].to_numpy() - 1000 == hot).mean()
    assert share == pytest.approx(1 - 1 / ratio, abs=0.02)


def test_a_ratio_of_one_makes_nothing_hot():
    auction = table_of("bid", Rules(hot_auction_ratio=1))["auction"]
    assert pc.max(pc.value_counts(auction).field("counts")).as_py() < 1000


def test_prices_are_uniform_in_their_logarithm():
    prices = table_of("bid")["price"].to_numpy()
    assert prices.min() >= 100
    assert prices.max() <= 10**8
    shares = np.histogram(np.log10(prices), bins=6, range=(2, 8))[0] / len(prices)
    assert shares == pytest.approx([1 / 6] * 6, abs=0.005)


def test_the_least_and_the_greatest_price_are_as_nexmark_has_them():
    bits = np.array([0, 2**24 - 1], dtype=np.uint64)
    assert price(bits).tolist() == [100, round(100 * 10.0 ** (6 - 6 / 2**24))]


def test_half_of_the_bids_come_through_hot_channels_with_one_url_each():
    bids = table_of("bid")
    pairs = pa.table({"channel": bids["channel"], "url": bids["url"]}).group_by(["channel", "url"]).aggregate([])
    assert len(pairs) == len(set(pairs["channel"].to_pylist())) <= 10_004
    is_hot = pc.is_in(bids["channel"], value_set=pa.array(["Google", "Facebook", "Baidu", "Apple"]))
    assert pc.mean(is_hot).as_py() == pytest.approx(0.5, abs=0.01)
    has_id = pc.match_substring(pairs["url"], "&channel_id=")
    assert pc.mean(has_id).as_py() == pytest.approx(0.9, abs=0.02)
    assert pc.all(pc.match_substring_regex(pairs["url"], r"^https://www\.nexmark\.com/(\w{3,4}/){3}item")).as_py()


@pytest.mark.parametrize(("table", "used"), [("bid", 32), ("auction", 48), ("person", 8)])
def test_extra_brings_events_to_their_average_size(table: str, used: int):
    rules = Rules(avg_bid_size=150, avg_auction_size=700, avg_person_size=300)
    batch = table_of(table, rules, events=100_000)
    strings = [batch[field.name] for field in batch.schema if field.type == pa.string()]
    if table == "bid":
        strings = [batch["extra"]]
    sizes = used + np.sum([pc.binary_length(column).to_numpy() for column in strings], axis=0)
    assert sizes.mean() == pytest.approx({"bid": 150, "auction": 700, "person": 300}[table], rel=0.01)


def test_extra_is_empty_where_an_event_is_large_enough_without():
    extra = table_of("bid", Rules(avg_bid_size=32), events=1000)["extra"]
    assert set(extra.to_pylist()) == {""}


def test_auctions_expire_after_they_open_and_reserve_more_than_the_first_bid():
    auctions = table_of("auction")
    lengths = pc.subtract(auctions["expires"].cast(pa.int64()), auctions["date_time"].cast(pa.int64())).to_numpy()
    horizon_us = Rules().auction_horizon_us()
    assert lengths.min() >= 1000
    assert lengths.mean() == pytest.approx(horizon_us, rel=0.03)
    assert pc.all(pc.greater(auctions["reserve"], auctions["initial_bid"])).as_py()
    assert sorted(set(auctions["category"].to_pylist())) == [10, 11, 12, 13, 14]


def test_people_have_plausible_strings():
    people = table_of("person")
    patterns = {
        "name": r"^[A-Z][a-z]+ [A-Z][a-z]+$",
        "email_address": r"^[a-z][a-z ]{1,4}[a-z]@[a-z][a-z ]{1,2}[a-z]\.com$",
        "credit_card": r"^(\d{4} ){3}\d{4}$",
        "state": r"^(AZ|CA|ID|OR|WA|WY)$",
    }
    for column, pattern in patterns.items():
        assert pc.all(pc.match_substring_regex(people[column], pattern)).as_py(), column
    assert len(set(people["city"].to_pylist())) == 10


def test_each_event_row_has_exactly_the_struct_of_its_kind():
    events = table_of("event", events=5000)
    for kind in Kind:
        present = events[kind.name.lower()].is_valid()
        assert present.equals(pc.equal(events["event_type"], pa.scalar(int(kind), pa.int32())))
    bids = events["bid"].filter(events["bid"].is_valid())
    assert pa.Table.from_struct_array(bids).equals(pa.Table.from_batches([table_of("bid", events=5000)]))


def test_other_seeds_give_other_values_and_the_same_seed_the_same():
    first, again, other = (table_of("bid", Rules(seed=seed), events=5000) for seed in (7, 7, 8))
    assert first.equals(again)
    for column in ("auction", "bidder", "price", "channel", "url", "extra"):
        assert not first[column].equals(other[column]), column


def test_columns_do_not_depend_on_each_other():
    values = table_of("bid")
    pairs = [values[name].to_numpy().astype(float) for name in ("price",)]
    lengths = pc.binary_length(values["extra"]).to_numpy().astype(float)
    channel = pc.match_substring(values["channel"], "channel").to_numpy(zero_copy_only=False).astype(float)
    correlation = np.corrcoef([*pairs, lengths, channel])
    assert np.abs(correlation - np.eye(3)).max() < 0.01


def test_the_stream_is_the_same_in_every_version():
    bids = table_of("bid", events=60).slice(0, 3)
    assert draw(np.arange(3, dtype=np.int64), column_key(0, "bid.price")).tolist() == VECTOR_BITS
    assert [(row["auction"], row["bidder"], row["price"], row["channel"]) for row in bids.to_pylist()] == VECTOR_BIDS
    assert bids["extra"][0].as_py() == VECTOR_EXTRA


VECTOR_BITS = [1603938392666569348, 3463287075820248019, 5069960963983099471]
VECTOR_BIDS = [
    (1000, 1001, 331975, "Apple"),
    (1000, 1001, 1654, "Google"),
    (1006, 1001, 316988, "Apple"),
]
VECTOR_EXTRA = "vsaufywpxxbtuyogilebfuekidlxxitalincbpiffqxpnyvrkcgqhasdaddqhpnzqtaovahol"


@given(
    st.integers(0, 2**64 - 1),
    st.lists(st.integers(0, 10**12), max_size=30),
    st.sampled_from(sorted(TABLES)),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_a_row_depends_on_nothing_but_its_number(seed: int, numbers: list[int], name: str, data: st.DataObject):
    rules, table = Rules(seed=seed), TABLES[name]
    wanted = np.array(numbers, dtype=np.int64)
    if table.kind is not None:
        wanted = wanted[rules.kinds(wanted) == table.kind]
    cut = data.draw(st.integers(0, len(wanted)))
    whole = make_batch(table, table.schema, rules, wanted)
    parts = [make_batch(table, table.schema, rules, part) for part in (wanted[:cut], wanted[cut:])]
    assert pa.Table.from_batches(parts).combine_chunks().equals(pa.Table.from_batches([whole]).combine_chunks())
    fields = data.draw(st.permutations(table.schema.names).flatmap(lambda all: st.just(all[: max(len(all) // 2, 1)])))
    assert make_batch(table, table.select(fields), rules, wanted).equals(whole.select(fields))


@given(st.integers(1, 3000).filter(lambda size: size % 953), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_out_of_order_groups_keep_every_event_and_stay_within_their_group(size: int, events: int):
    positions = np.arange(events, dtype=np.int64)
    numbers = Rules(out_of_order_group_size=size).numbers_at(positions, events)
    assert np.array_equal(np.sort(numbers), positions)
    assert np.array_equal(numbers // size, positions // size)


def test_out_of_order_groups_are_out_of_order():
    numbers = Rules(out_of_order_group_size=100).numbers_at(np.arange(100, dtype=np.int64), 100)
    assert numbers[:4].tolist() == [0, 53, 6, 59]


@given(st.integers(0, 2**64 - 1), st.integers(5, 120))
@settings(max_examples=60, deadline=None)
def test_spaced_text_has_letters_at_both_ends_and_the_lengths_it_announces(seed: int, max_length: int):
    bits = draw(np.arange(50, dtype=np.int64), np.uint64(seed))
    for value in join_text([spaced_text(bits, max_length)]).to_pylist():
        assert 3 <= len(value) < max_length
        assert value == value.strip()
        assert set(value) <= set("abcdefghijklmnopqrstuvwxyz ")


def test_text_of_length_zero_and_of_no_rows_is_valid():
    none = np.zeros(0, dtype=np.uint64)
    assert join_text([exact_text(none, np.zeros(0, dtype=np.int64))]).to_pylist() == []
    bits = np.arange(3, dtype=np.uint64)
    assert join_text([exact_text(bits, np.zeros(3, dtype=np.int64))]).to_pylist() == ["", "", ""]
    assert extra_lengths(bits, 10, 5).tolist() == [0, 0, 0]
