"""Every query of Nexmark gives what DuckDB says, whole, killed at every epoch, and at changing parallelism."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from .answers import Tables, differences, read_rows
from .conftest import ROOT
from .lives import LIVES, Events, Life, Query

QUERIES = sorted((ROOT / "examples" / "nexmark").glob("q*.yaml"), key=lambda path: int(path.stem[1:]))

#: Twenty windows of ten seconds around midnight, somewhat out of order.
IN_TIME = {"baseTime": "2015-07-14T23:59:00Z", "outOfOrderGroupSize": 100, "eventRate": 200}
BIDS = Events(4000, {**IN_TIME, "events": 20_000})
#: Auctions and people keep up with bids, so that both sides of a join take several epochs.
SEVERAL_TABLES = Events(
    1600, {**IN_TIME, "events": 9000, "personProportion": 1, "auctionProportion": 2, "bidProportion": 3}
)
#: From before eight in the morning until after.
MORNING = Events(4000, {**BIDS.source, "baseTime": "2015-07-15T07:59:30Z"})

EVENTS = {"q14": MORNING} | dict.fromkeys(("q3", "q4", "q6", "q8", "q9", "q20"), SEVERAL_TABLES)

#: What of the rows found is the same in all runs, where not all is.
DEFINED = {"q12": "SELECT bidder, sum(bid_count) AS bid_count FROM found GROUP BY bidder"}


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES.keys())
@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_a_query_gives_the_rows_of_duckdb(
    path: Path, life: Life, folder: Path, tables_of: Callable[[Events], Tables]
) -> None:
    events = EVENTS.get(path.stem, BIDS)
    life(Query(path, events))
    expected = Path(__file__).with_name(f"{path.stem}.sql").read_text()
    found = read_rows(folder / "out" / "nexmark" / path.stem)
    if path.stem in DEFINED:
        found = duckdb.sql(DEFINED[path.stem]).to_arrow_table()
    assert differences(expected, tables_of(events), found) == []


def test_all_queries_are_there() -> None:
    assert [path.stem for path in QUERIES] == [f"q{number}" for number in range(23)]
