"""What many browsers look at is asked for once."""

from __future__ import annotations

import asyncio
import threading

import pytest
from arroyo_console.errors import ConsoleError
from arroyo_console.pages.live import Live


class Counted:
    """A call that can be held."""

    def __init__(self) -> None:
        self.calls = 0
        self.may_end = threading.Event()
        self.may_end.set()

    def ask(self, what: str) -> str:
        self.calls += 1
        assert self.may_end.wait(20)
        if what == "bad":
            raise ConsoleError("refused")
        return f"{what} {self.calls}"


@pytest.fixture
def counted():
    return Counted()


def test_many_who_ask_at_the_same_time_get_one_answer(counted):
    async def run() -> list[str]:
        live = Live()
        counted.may_end.clear()
        asked = [asyncio.create_task(live.get(counted.ask, "jobs")) for _ in range(50)]
        await asyncio.sleep(0)
        counted.may_end.set()
        answers = await asyncio.gather(*asked)
        live.close()
        return answers

    assert set(asyncio.run(run())) == {"jobs 1"}


def test_an_answer_is_shared_as_long_as_it_is_fresh(counted):
    async def run() -> tuple[str, str, str]:
        live = Live()
        first = await live.get(counted.ask, "jobs", fresh_s=60.0)
        again = await live.get(counted.ask, "jobs", fresh_s=60.0)
        stale = await live.get(counted.ask, "jobs", fresh_s=0.0)
        live.close()
        return first, again, stale

    assert asyncio.run(run()) == ("jobs 1", "jobs 1", "jobs 2")


def test_somebody_who_leaves_takes_no_answer_away(counted):
    async def run() -> str:
        live = Live()
        counted.may_end.clear()
        first, second = (asyncio.create_task(live.get(counted.ask, "jobs")) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        counted.may_end.set()
        answer = await second
        live.close()
        return answer

    assert asyncio.run(run()) == "jobs 1"


def test_all_are_told_what_is_refused(counted):
    async def run() -> None:
        live = Live()
        results = await asyncio.gather(*(live.get(counted.ask, "bad") for _ in range(3)), return_exceptions=True)
        assert [str(each) for each in results] == ["refused"] * 3
        live.close()

    asyncio.run(run())
    assert counted.calls == 1


def test_answers_that_nobody_asks_for_are_forgotten(counted, monkeypatch):
    async def run() -> int:
        live = Live()
        for number in range(200):
            await live.get(counted.ask, f"job {number}", fresh_s=60.0)
        monkeypatch.setattr("arroyo_console.pages.live._FORGOTTEN_S", -1.0)
        await live.get(counted.ask, "one more")
        known = live.known
        live.close()
        return known

    assert asyncio.run(run()) == 1


def test_what_is_made_of_an_answer_is_made_once_and_the_newest_is_kept():
    made: list[int] = []

    def total(numbers: list[int]) -> int:
        made.append(sum(numbers))
        return sum(numbers)

    live = Live()
    first, second = [1, 2], [1, 3]
    assert [live.made("a", total, each) for each in (first, first, second, second)] == [3, 3, 4, 4]
    assert made == [3, 4]
    # Many names push the oldest out, so that it does not grow.
    for number in range(200):
        live.made(number, total, [number])
    assert live.made("a", total, second) == 4
    assert len(made) == 203
    live.close()
