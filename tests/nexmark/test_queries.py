"""Every query of Nexmark, in YAML and in SQL, gives what DuckDB says, in every life of a job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ..lives.answers import Tables, answer, differences, read_written
from ..lives.lives import LIVES, Life, PipelineFile, killed_at_every_epoch
from ..lives.places import ROOT
from .events import Events


def _queries(folder: Path, ending: str) -> list[Path]:
    return sorted(folder.glob(f"q*{ending}"), key=lambda path: int(path.stem[1:]))


EXAMPLES = ROOT / "examples" / "nexmark"
QUERIES = _queries(EXAMPLES, ".yaml")
IN_SQL = _queries(EXAMPLES / "sql", ".sql")
#: Below `out`, by the language of the query.
FOLDERS = {".yaml": "nexmark", ".sql": "nexmark_sql"}
#: What SQL adds to operators is a plan: some lives show it as well as all.
LIVES_IN_SQL = ("whole", "killed at every epoch", "from 2 to 3 to 1 subtasks", "in live workers")

#: Twenty windows of ten seconds around midnight, somewhat out of order.
IN_TIME = {"baseTime": "2015-07-14T23:59:00Z", "outOfOrderGroupSize": 100, "eventRate": 200}
BIDS = Events(4000, {**IN_TIME, "events": 20_000})
#: Auctions and people keep up with bids, so that both sides of a join take several epochs.
SEVERAL_TABLES = Events(
    1600, {**IN_TIME, "events": 9000, "personProportion": 1, "auctionProportion": 2, "bidProportion": 3}
)
#: From before eight in the morning until after.
MORNING = Events(4000, {**BIDS.source, "baseTime": "2015-07-15T07:59:30Z"})

#: No auction is hotter than others, so that several have as many bids.
EVEN = Events(4000, {**BIDS.source, "hotAuctionRatio": 1})

EVENTS = {"q5": EVEN, "q14": MORNING} | dict.fromkeys(("q3", "q4", "q6", "q8", "q9", "q20"), SEVERAL_TABLES)

#: What of the rows found is the same in all runs, where not all is.
DEFINED = {"q12": "SELECT bidder, sum(bid_count) AS bid_count FROM rows GROUP BY bidder"}


@pytest.mark.parametrize(
    ("path", "life"),
    [
        *(pytest.param(path, life, id=f"{path.stem}-{name}") for path in QUERIES for name, life in LIVES.items()),
        *(pytest.param(path, LIVES[name], id=f"{path.name}-{name}") for path in IN_SQL for name in LIVES_IN_SQL),
    ],
)
def test_a_query_gives_the_rows_of_duckdb(
    path: Path, life: Life, folder: Path, tables_of: Callable[[Events], Tables]
) -> None:
    events = EVENTS.get(path.stem, BIDS)
    life(PipelineFile(path, epoch_rows=events.epoch_rows, settings={"nexmark.source": events.source}))
    expected = answer(Path(__file__).with_name(f"{path.stem}.sql").read_text(), tables_of(events))
    found = read_written(folder / "out" / FOLDERS[path.suffix] / path.stem, expected.schema)
    if path.stem in DEFINED:
        found = [(answer(DEFINED[path.stem], {"rows": rows}), sign) for rows, sign in found]
    assert differences(expected, found) == []
    if life is killed_at_every_epoch:
        assert all(rows.num_rows for rows, _ in found), "no result has ever changed"


def test_all_queries_are_there() -> None:
    names = [f"q{number}" for number in range(23)]
    assert [path.stem for path in QUERIES] == names
    assert [path.stem for path in IN_SQL] == names
