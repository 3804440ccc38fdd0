"""A commit is interrupted at each of its calls, by each kind of failure, and the table is asked what is there."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.updating import make_updates, row_ids, with_updating
from arroyo_core.errors import OperatorError, RetryHint, retry_hint
from tests.mysql_server import MysqlServer

from .support import Faults, harness

pytestmark = pytest.mark.server

STREAM = pa.schema({"word": pa.string(), "n": pa.int64()})
UPDATING = with_updating(ArroyoSchema(STREAM))
APPEND = {"create_table": True}
UPSERT = {"mode": "upsert", "keys": ["word"], "create_table": True}


def changes(*items):
    """Each item is `+` or `-`, a word and a number."""
    batch = pa.RecordBatch.from_pylist([{"word": word, "n": n} for _, word, n in items], STREAM)
    signs = pa.array([sign == "-" for sign, _, _ in items]).to_numpy(zero_copy_only=False)
    return make_updates(batch, is_retract=signs, ids=row_ids(batch, ["word"]))


def rows(*items):
    return pa.RecordBatch.from_pylist([{"word": word, "n": n} for word, n in items], STREAM)


CASES = {
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


def found(database):
    return database.execute("select word, n from totals order by word, n")


def empty(database):
    database.empty()


def calls_of(database, case, epoch):
    """What a commit of this epoch asks the database, when all is well."""
    faults, calls = Faults(database), []

    def commit(life, staged):
        life.commit(staged)
        calls.extend(faults.calls)

    _live(database, case, faults, epoch, commit)
    empty(database)
    return calls


def _live(database, case, faults, epoch, commit):
    """All epochs; `commit` does that of one, with the faults that it wants."""
    fields, stream, batches = CASES[case]
    with harness(database, stream, connect=faults.connect, **fields) as life:
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


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("epoch", [0, 1], ids=["first epoch", "second epoch"])
@pytest.mark.parametrize("is_late", [False, True], ids=["before", "answer lost"])
def test_an_interrupted_commit_is_repeated_exactly(database: MysqlServer, case, epoch, is_late):
    calls = calls_of(database, case, epoch)
    assert "start transaction" in calls
    assert calls[-1] == "commit"
    for fail_at in range(1, len(calls) + 1):
        faults = Faults(database)
        faults.is_late = is_late

        def commit(life, staged, faults=faults, fail_at=fail_at):
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
        assert found(database) == EXPECTED[case], f"{calls[fail_at - 1]!r} failed"
        empty(database)


@pytest.mark.parametrize("case", CASES)
def test_a_driver_that_wakes_up_anywhere_in_its_commit_is_refused_or_changes_nothing(database: MysqlServer, case):
    """The old driver pauses before a call; meanwhile the next one commits this epoch and another."""
    fields, stream, batches = CASES[case]
    calls = calls_of(database, case, 0)
    # From the lock on, the next driver would wait for it.
    lock = next(place for place, call in enumerate(calls) if "on duplicate key update epoch = epoch" in call)
    for place in range(lock + 1):
        faults = Faults(database)
        with harness(database, stream, **fields) as life:
            life.process(batches[0])
            staged, token = life.checkpoint(), life.last_token

            def next_driver(life=life, staged=staged):
                life.take_over()
                for batch in (None, *batches[1:]):
                    if batch is not None:
                        life.process(batch)
                    life.commit(staged if batch is None else life.checkpoint())
                    life.restore()

            faults.at(place + 1, next_driver)
            with harness(database, stream, connect=faults.connect, **fields) as old:
                old.process(batches[0])
                own = old.checkpoint()
                with pytest.raises(OperatorError, match="this driver must stop"):
                    old.commit(own, token=token)
        assert found(database) == EXPECTED[case], f"woke up before {calls[place]!r}"
        empty(database)


@pytest.mark.parametrize("case", CASES)
def test_two_drivers_at_once_commit_an_epoch_once(database: MysqlServer, case):
    fields, stream, batches = CASES[case]
    for _ in range(10):
        with harness(database, stream, **fields) as life:
            for batch in batches:
                life.process(batch)
                staged = life.checkpoint()
                start, problems = threading.Barrier(4), []

                def commit(life=life, staged=staged, start=start, problems=problems, token=life.last_token):
                    start.wait()
                    try:
                        life.commit(staged, token=token)
                    except OperatorError as error:
                        problems.append(error)

                drivers = [threading.Thread(target=commit) for _ in range(4)]
                for driver in drivers:
                    driver.start()
                for driver in drivers:
                    driver.join()
                # Those who only lost a race try again.
                assert [str(each) for each in problems if retry_hint(each) is not RetryHint.WITH_BACKOFF] == []
                life.commit(staged)
                life.restore()
        assert found(database) == EXPECTED[case]
        empty(database)


def test_a_server_that_is_killed_within_a_commit_has_all_of_an_epoch_or_nothing(own_server: MysqlServer):
    fields, stream, batches = CASES["append"]
    faults = Faults(own_server)
    with harness(own_server, stream, connect=faults.connect, **fields) as life:
        life.process(batches[0])
        staged = life.checkpoint()
        for place in (2, 6, 14):
            faults.calls.clear()
            faults.at(place, own_server.kill)
            with pytest.raises(OperatorError) as failed:
                life.commit(staged)
            assert retry_hint(failed.value) is RetryHint.WITH_BACKOFF
            own_server.start()
        faults.at(0, lambda: None)
        life.commit(staged)
    assert found(own_server) == [("a", 1), ("b", 2)]


def test_a_driver_that_is_paused_with_the_lock_loses_it(own_server: MysqlServer, monkeypatch):
    """Nothing is sent within the transaction for longer than the server waits."""
    from arroyo_mysql.sink import target

    monkeypatch.setattr(target, "IDLE_S", 1)
    fields, stream, batches = CASES["append"]
    paused, go_on = threading.Event(), threading.Event()
    original = target.row_literals

    def pause(rows):
        if not paused.is_set():
            paused.set()
            assert go_on.wait(60)
        return original(rows)

    monkeypatch.setattr(target, "row_literals", pause)
    with harness(own_server, stream, **fields) as life:
        life.process(batches[0])
        staged, problems = life.checkpoint(), []

        def commit():
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
    assert found(own_server) == [("a", 1), ("b", 2)]
