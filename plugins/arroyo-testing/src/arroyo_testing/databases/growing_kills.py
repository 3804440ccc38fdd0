"""A table that grows while its source is killed, rescaled and cut off: duplicates and gaps are counted."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from arroyo_testing.databases.growing import GrowingTable, words


def grow(events: GrowingTable, dice: random.Random, count: int) -> int:
    """Add rows in one transaction, with the time of the step, which they share; the number of rows so far."""
    added = dice.randint(1, 6)
    at = events.time(f"2024-01-01 {count // 3600:02}:{count // 60 % 60:02}:{count % 60:02}")
    values = ", ".join(f"('w{count + each}', {at})" for each in range(added))
    events.server.execute(f"insert into events (word, at) values {values}")
    return count + added


class GrowingKillSuite:
    """For a class of tests that has the fixture `events`, a `GrowingTable`."""

    def cut_some(self, events: GrowingTable, monkeypatch: pytest.MonkeyPatch, dice: random.Random) -> list[int]:
        """From now on end the session of the source in front of some of its queries; returns what counts them."""
        raise NotImplementedError

    @pytest.mark.parametrize("growing_column", ["id", "at"])
    @pytest.mark.parametrize("seed", range(4))
    def test_kills_rescales_and_cuts_lose_and_repeat_no_row(
        self, events: GrowingTable, monkeypatch: pytest.MonkeyPatch, seed: int, growing_column: str
    ) -> None:
        dice = random.Random(seed)
        count = grow(events, dice, 0)
        found: Counter[str] = Counter()
        lost = 0
        life = events.harness(growing_column=growing_column, batch_rows=3)
        cuts = self.cut_some(events, monkeypatch, dice)
        for turn in range(60):
            if turn < 40 and dice.random() < 0.6:
                count = grow(events, dice, count)
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
        assert len(cuts) > 0

    @pytest.mark.parametrize("seed", range(2))
    def test_a_bounded_source_that_is_killed_ends_with_the_last_row_of_its_first_start(
        self, events: GrowingTable, seed: int
    ) -> None:
        dice = random.Random(seed)
        count = grow(events, dice, 0)
        while count < 20:
            count = grow(events, dice, count)
        life = events.harness(until="latest", batch_rows=2)
        found: Counter[str] = Counter()
        life.run(rows=1, is_lost=True)
        found.update(words(life.run(rows=1, parallelism=2).table))
        later = count
        while True:
            later = grow(events, dice, later)
            is_lost = dice.random() < 0.4
            run = life.run(rows=dice.randint(1, 5), parallelism=dice.randint(1, 3), is_lost=is_lost)
            if not is_lost:
                found.update(words(run.table))
                if run.is_final:
                    break
        life.close()
        assert found == Counter(f"w{each}" for each in range(count))
