"""A commit is interrupted at each of its calls, by each kind of failure, and the table is asked what is there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.updating import make_updates, row_ids, with_updating
from arroyo_core.errors import OperatorError, RetryHint, retry_hint
from arroyo_testing.databases.server import DatabaseServer
from arroyo_testing.databases.sink import STREAM, UPSERT, Faults, SinkDatabase, rows
from arroyo_testing.parallel import ParallelHarness

UPDATING = with_updating(ArroyoSchema(STREAM))
APPEND: dict[str, Any] = {"create_table": True}


def changes(*items: tuple[str, str, int]) -> pa.RecordBatch:
    """Each item is `+` or `-`, a word and a number."""
    batch = rows(*((word, n) for _, word, n in items))
    signs = pa.array([sign == "-" for sign, _, _ in items]).to_numpy(zero_copy_only=False)
    return make_updates(batch, is_retract=signs, ids=row_ids(batch, ["word"]))


CASES: dict[str, tuple[dict[str, Any], Any, list[pa.RecordBatch]]] = {
    "append": (APPEND, STREAM, [rows(("a", 1), ("b", 2)), rows(("a", 1)), rows(("c", 3))]),
    "upsert": (
        UPSERT,
        UPDATING,
        [
            changes(("+", "a", 1), ("+", "b", 2)),
            changes(("-", "a", 1), ("+", "a", 5), ("-", "b", 2), ("+", "c", 6)),
            changes(("-", "c", 6), ("+", "b", 7)),
        ],
    ),
}
EXPECTED = {"append": [("a", 1), ("a", 1), ("b", 2), ("c", 3)], "upsert": [("a", 5), ("b", 7)]}

Commit = Callable[[ParallelHarness, Any], None]


class SinkCrashSuite:
    """For a class of tests that has the fixtures `database`, a `SinkDatabase`, and `own_server`."""

    #: The call that begins the transaction, and what is in the one that locks the token.
    begin: ClassVar[str]
    lock: ClassVar[str]
    #: Calls of the first commit in front of which the server is killed: before, in the middle, and at the end.
    kill_at: ClassVar[tuple[int, ...]]

    def pause_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the server end a transaction that says nothing after a second or less."""
        raise NotImplementedError

    def pause_at_rows(self, monkeypatch: pytest.MonkeyPatch, pause: Callable[[], None]) -> None:
        """Call `pause` whenever rows are about to be written within a transaction."""
        raise NotImplementedError

    @pytest.mark.parametrize("case", CASES)
    @pytest.mark.parametrize("epoch", [0, 1], ids=["first epoch", "second epoch"])
    @pytest.mark.parametrize("is_late", [False, True], ids=["before", "answer lost"])
    def test_an_interrupted_commit_is_repeated_exactly(
        self, database: SinkDatabase, case: str, epoch: int, is_late: bool
    ) -> None:
        calls = _calls_of(database, case, epoch)
        assert self.begin in calls
        assert calls[-1] == "commit"
        for fail_at in range(1, len(calls) + 1):
            faults = database.faults(database.server)
            faults.is_late = is_late

            def commit(life: ParallelHarness, staged: Any, faults: Faults = faults, fail_at: int = fail_at) -> None:
                faults.fail_at = fail_at
                with pytest.raises(OperatorError) as failed:
                    life.commit(staged)
                assert retry_hint(failed.value) is RetryHint.WITH_BACKOFF
                faults.fail_at = None
                if fail_at % 2:
                    # The next driver does it, and otherwise the same.
                    life.take_over()
                life.commit(staged)

            _live(database, case, faults, epoch, commit)
            assert database.found() == EXPECTED[case], f"{calls[fail_at - 1]!r} failed"
            database.empty()

    @pytest.mark.parametrize("case", CASES)
    def test_a_driver_that_wakes_up_anywhere_in_its_commit_is_refused_or_changes_nothing(
        self, database: SinkDatabase, case: str
    ) -> None:
        """The old driver pauses before a call; meanwhile the next one commits this epoch and another."""
        fields, stream, batches = CASES[case]
        calls = _calls_of(database, case, 0)
        # From the lock on, the next driver would wait for it.
        lock = next(place for place, call in enumerate(calls) if self.lock in call)
        for place in range(lock + 1):
            faults = database.faults(database.server)
            with database.harness(stream, **fields) as life:
                life.process(batches[0])
                staged, token = life.checkpoint(), life.last_token

                def next_driver(
                    life: ParallelHarness = life, staged: Any = staged, later: list[pa.RecordBatch] = batches[1:]
                ) -> None:
                    life.take_over()
                    life.commit(staged)
                    life.restore()
                    for batch in later:
                        life.process(batch)
                        life.commit(life.checkpoint())
                        life.restore()

                faults.at(place + 1, next_driver)
                with database.harness(stream, connect=faults.connect, **fields) as old:
                    old.process(batches[0])
                    own = old.checkpoint()
                    with pytest.raises(OperatorError, match="this driver must stop"):
                        old.commit(own, token=token)
            assert database.found() == EXPECTED[case], f"woke up before {calls[place]!r}"
            database.empty()

    @pytest.mark.parametrize("case", CASES)
    def test_two_drivers_at_once_commit_an_epoch_once(self, database: SinkDatabase, case: str) -> None:
        fields, stream, batches = CASES[case]
        for _ in range(10):
            with database.harness(stream, **fields) as life:
                for batch in batches:
                    life.process(batch)
                    staged = life.checkpoint()
                    problems = _commit_at_once(life, staged, drivers=4)
                    # Those who only lost a race try again.
                    assert [str(each) for each in problems if retry_hint(each) is not RetryHint.WITH_BACKOFF] == []
                    life.commit(staged)
                    life.restore()
            assert database.found() == EXPECTED[case]
            database.empty()

    def test_a_server_that_is_killed_within_a_commit_has_all_of_an_epoch_or_nothing(
        self, database: SinkDatabase, own_server: DatabaseServer
    ) -> None:
        fields, stream, batches = CASES["append"]
        own = type(database)(own_server)
        faults = own.faults(own_server)
        with own.harness(stream, connect=faults.connect, **fields) as life:
            life.process(batches[0])
            staged = life.checkpoint()
            for place in self.kill_at:
                faults.calls.clear()
                faults.at(place, own_server.kill)
                with pytest.raises(OperatorError) as failed:
                    life.commit(staged)
                assert retry_hint(failed.value) is RetryHint.WITH_BACKOFF
                own_server.start()
            faults.at(0, lambda: None)
            life.commit(staged)
        assert own.found() == [("a", 1), ("b", 2)]

    def test_a_driver_that_is_paused_with_the_lock_loses_it(
        self, database: SinkDatabase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing is sent within the transaction for longer than the server waits."""
        fields, stream, batches = CASES["append"]
        paused, go_on = threading.Event(), threading.Event()

        def pause() -> None:
            if not paused.is_set():
                paused.set()
                assert go_on.wait(60)

        self.pause_limit(monkeypatch)
        self.pause_at_rows(monkeypatch, pause)
        with database.harness(stream, **fields) as life:
            life.process(batches[0])
            staged = life.checkpoint()
            problems: list[OperatorError] = []

            def commit() -> None:
                try:
                    life.commit(staged)
                except OperatorError as error:
                    problems.append(error)

            first = threading.Thread(target=commit)
            first.start()
            assert paused.wait(60)
            life.commit(staged)
            go_on.set()
            first.join()
            assert [retry_hint(problem) for problem in problems] == [RetryHint.WITH_BACKOFF]
        assert database.found() == [("a", 1), ("b", 2)]


def _commit_at_once(life: ParallelHarness, staged: Any, *, drivers: int) -> list[OperatorError]:
    """One epoch by several; what became of them."""
    start, problems, token = threading.Barrier(drivers), list[OperatorError](), life.last_token

    def commit() -> None:
        start.wait()
        try:
            life.commit(staged, token=token)
        except OperatorError as error:
            problems.append(error)

    threads = [threading.Thread(target=commit) for _ in range(drivers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return problems


def _calls_of(database: SinkDatabase, case: str, epoch: int) -> list[str]:
    """What a commit of this epoch asks the database, when all is well."""
    faults = database.faults(database.server)
    calls: list[str] = []

    def commit(life: ParallelHarness, staged: Any) -> None:
        life.commit(staged)
        calls.extend(faults.calls)

    _live(database, case, faults, epoch, commit)
    database.empty()
    return calls


def _live(database: SinkDatabase, case: str, faults: Faults, epoch: int, commit: Commit) -> None:
    """All epochs; `commit` does that of one, with the faults that it wants."""
    fields, stream, batches = CASES[case]
    with database.harness(stream, connect=faults.connect, **fields) as life:
        for number, batch in enumerate(batches):
            life.process(batch)
            staged = life.checkpoint()
            if number == epoch:
                faults.calls.clear()
                commit(life, staged)
            else:
                fail_at, faults.fail_at = faults.fail_at, None
                life.commit(staged)
                faults.fail_at = fail_at
            life.restore()
