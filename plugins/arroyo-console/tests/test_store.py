from __future__ import annotations

from urllib.parse import quote
from uuid import uuid4

import pytest
from arroyo_console.errors import ConflictError, UnknownError
from arroyo_console.store import migrations, open_store
from arroyo_console.store.lease import LEASE_S, Lease
from arroyo_console.store.store import KEPT_CHANGES, sqlite_url
from arroyo_console.store.tables import LEASES
from arroyo_console.values import Language, State
from sqlalchemy import insert, update

from arroyo_core.errors import SetupError
from tests.postgres_server import shared_server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.server)])
def store(request, tmp_path):
    if request.param == "sqlite":
        opened = open_store(sqlite_url(tmp_path / "console.db"))
    else:
        opened = open_store(_new_database())
    yield opened
    opened.close()


def _new_database() -> str:
    server = shared_server()
    name = f"console_{uuid4().hex}"
    server.execute(f"CREATE DATABASE {name}")
    known = server.config
    return f"postgresql://{known['user']}:{quote(str(known['password']))}@{known['host']}:{known['port']}/{name}"


def _add(store, name="orders", text="name: orders", now_us=1):
    return store.add_pipeline(name, Language.YAML, text, parallelism=None, now_us=now_us)


def test_a_new_pipeline_has_a_job_that_nobody_has_started(store):
    made = _add(store)
    assert (made.name, made.version, made.job.state, made.run) == ("orders", 1, State.CREATED, None)
    assert not made.job.is_wanted
    assert store.active() == []


def test_two_pipelines_cannot_have_one_name(store):
    _add(store)
    with pytest.raises(ConflictError, match="there is a pipeline 'orders' already"):
        _add(store)


def test_another_text_is_another_version_and_the_former_one_stays(store):
    made = _add(store)
    store.change_pipeline(made.id, text=(Language.SQL, "SELECT 1"), now_us=2)
    assert store.pipeline(made.id).version == 2
    assert [(each.version, each.language, each.text) for each in store.versions(made.id)] == [
        (2, Language.SQL, "SELECT 1"),
        (1, Language.YAML, "name: orders"),
    ]
    assert store.version(made.id, 1).text == "name: orders"


def test_the_newest_run_comes_with_its_pipeline(store):
    made = _add(store)
    facts = {"version": 1, "host": "here", "boot_id": "b", "is_restart": False, "now_us": 5}
    store.add_run(made.job.id, 1, **facts)
    second = store.add_run(made.job.id, 2, **facts)
    store.change_run(second, pid=7, process_start=8)
    found = store.pipeline(made.id).run
    assert (found.number, found.pid, found.process_start, found.ended_us) == (2, 7, 8, None)
    assert [run.number for run in store.runs(made.job.id)] == [2, 1]


def test_a_run_cannot_be_started_twice(store):
    made = _add(store)
    facts = {"version": 1, "host": "here", "boot_id": "b", "is_restart": False, "now_us": 5}
    store.add_run(made.job.id, 1, **facts)
    with pytest.raises(ConflictError, match="started by another server"):
        store.add_run(made.job.id, 1, **facts)


def test_pages_go_on_where_the_one_before_ended_and_searches_take_no_wildcards(store):
    for number in range(5):
        _add(store, name=f"p{number}", now_us=number)
    _add(store, name="100%", now_us=9)
    first, total = store.pipelines(search="p", limit=2, offset=0)
    second, _ = store.pipelines(search="p", limit=2, offset=2)
    assert total == 5
    assert [each.name for each in (*first, *second)] == ["p4", "p3", "p2", "p1"]
    assert [each.name for each in store.pipelines(search="%", limit=9, offset=0)[0]] == ["100%"]


def test_changes_of_state_are_kept_up_to_a_number(store):
    made = _add(store)
    for number in range(KEPT_CHANGES + 20):
        store.change_job(made.job.id, state=State.RUNNING, reason=f"change {number}", now_us=number)
    changes = store.changes(made.job.id)
    assert len(changes) == KEPT_CHANGES
    assert changes[0].reason == f"change {KEPT_CHANGES + 19}"


def test_what_is_deleted_is_unknown(store):
    made = _add(store)
    store.delete_pipeline(made.id)
    with pytest.raises(UnknownError, match="there is no pipeline"):
        store.pipeline(made.id)
    with pytest.raises(UnknownError, match="there is no job"):
        store.job(made.job.id)
    _add(store)


def test_migrations_are_done_once_and_a_later_database_is_refused(store, tmp_path):
    assert migrations.migrate(store.engine) == len(migrations.MIGRATIONS)
    with store.engine.begin() as connection:
        connection.execute(insert(migrations._APPLIED).values(version=99))
    with pytest.raises(SetupError, match="version 99 of the tables"):
        migrations.migrate(store.engine)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://host/name", "sqlite:///PATH and postgresql://HOST/NAME"),
        ("nonsense", "is not the URL of a database"),
        ("sqlite:////nowhere/at/all/console.db", "cannot be used"),
    ],
)
def test_databases_that_cannot_be_used_are_named(url, said):
    with pytest.raises(SetupError, match=said):
        open_store(url)


def test_a_password_of_a_database_is_not_repeated():
    with pytest.raises(SetupError) as raised:
        open_store("mysql://me:hunter22@host/name")
    assert "hunter22" not in str(raised.value)


def test_one_server_holds_the_lease_until_it_gives_it_up(store):
    first, second = Lease(store.engine, shown="first"), Lease(store.engine, shown="second")
    assert first.take()
    assert not second.take()
    assert (first.is_held, second.is_held, second.holder()) == (True, False, "first")
    assert first.take()
    first.give_up()
    assert second.take()
    assert not first.is_held


def test_a_lease_that_has_expired_is_anybodys_and_that_of_a_dead_process_too(store):
    first, second = Lease(store.engine, shown="first"), Lease(store.engine, shown="second")
    assert first.take()
    with store.engine.begin() as connection:
        connection.execute(update(LEASES).values(expires_us=0, host="elsewhere"))
    assert second.take()
    # The pid of this process, of another start: it is gone.
    with store.engine.begin() as connection:
        connection.execute(update(LEASES).values(process_start=1))
    assert first.take()
    assert second.holder() == "first"
    assert LEASE_S > 0
