"""A table that grows while its source is killed, rescaled and cut off: duplicates and gaps are counted."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from arroyo_postgres.growing import source

from tests.postgres_server import PostgresServer

from .support import harness, words

pytestmark = pytest.mark.server


class Cuts:
    """Ends the connection of a source on the server, in front of some of its queries."""

    def __init__(self, database: PostgresServer, monkeypatch: pytest.MonkeyPatch, dice: random.Random) -> None:
        self._database, self._dice, self._read = database, dice, source.copy_out
        self.count = 0
        monkeypatch.setattr(source, "copy_out", self._copy_out)

    def _copy_out(self, connection: Any, query: str) -> Any:
        if self._dice.random() < 0.15:
            self._database.execute(f"select pg_terminate_backend({connection.info.backend_pid}, 10000)")
            self.count += 1
        return self._read(connection, query)


def grow(database: PostgresServer, dice: random.Random, count: int) -> int:
    """Add rows in one transaction, with the time of the step, which they share; the number of rows so far."""
    added = dice.randint(1, 6)
    values = ", ".join(
        f"('w{count + each}', timestamptz '2024-01-01Z' + {count} * interval '1 s')" for each in range(added)
    )
    database.execute(f"insert into events (word, at) values {values}")
    return count + added


@pytest.mark.parametrize("growing_column", ["id", "at"])
@pytest.mark.parametrize("seed", range(4))
def test_kills_rescales_and_cuts_lose_and_repeat_no_row(database: PostgresServer, monkeypatch, seed, growing_column):
    dice = random.Random(seed)
    cuts = Cuts(database, monkeypatch, dice)
    count = grow(database, dice, 0)
    found: Counter[str] = Counter()
    lost = 0
    life = harness(database, growing_column=growing_column, batch_rows=3)
    for turn in range(60):
        if turn < 40 and dice.random() < 0.6:
            count = grow(database, dice, count)
        is_lost = dice.random() < 0.3
        run = life.run(rows=dice.randint(1, 7), parallelism=dice.randint(1, 4), ends_at_wait=True, is_lost=is_lost)
        life.clock.advance(dice.choice([0, 1, 120]))
        if is_lost:
            lost += run.table.num_rows
        else:
            found.update(words(run.table))
    monkeypatch.undo()
    life.clock.advance(120)
    while rest := words(life.run(ends_at_wait=True).table):
        found.update(rest)
    life.close()
    given = Counter(f"w{each}" for each in range(count))
    assert (given - found, found - given) == (Counter(), Counter())
    assert lost > 0
    assert cuts.count > 0


@pytest.mark.parametrize("seed", range(2))
def test_a_bounded_source_that_is_killed_ends_with_the_last_row_of_its_first_start(database, seed):
    dice = random.Random(seed)
    count = grow(database, dice, 0)
    while count < 20:
        count = grow(database, dice, count)
    life = harness(database, until="latest", batch_rows=2)
    found: Counter[str] = Counter()
    life.run(rows=1, is_lost=True)
    found.update(words(life.run(rows=1, parallelism=2).table))
    later = count
    while True:
        later = grow(database, dice, later)
        is_lost = dice.random() < 0.4
        run = life.run(rows=dice.randint(1, 5), parallelism=dice.randint(1, 3), is_lost=is_lost)
        if not is_lost:
            found.update(words(run.table))
            if run.is_final:
                break
    life.close()
    assert found == Counter(f"w{each}" for each in range(count))
