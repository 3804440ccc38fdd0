import sqlite3
from contextlib import closing

import pyarrow as pa
import pytest
from arroyo_template_database.config_pb2 import LookupConfig
from arroyo_template_database.plugin import TableConstructor

from arroyo_core.api import Registry
from arroyo_core.api.policy import PlanningPolicy, in_force
from arroyo_core.errors import ConfigError, DataError, ExternalError, RefusedError


def lookup(path, table="customers"):
    constructor = TableConstructor()
    return constructor.with_config(constructor.resolve(LookupConfig(path=str(path), table=table)), Registry())


@pytest.fixture
def path(tmp_path):
    """A database with a thousand customers, and a table of strange things."""
    made = tmp_path / "shop.db"
    with closing(sqlite3.connect(made)) as database:
        database.execute("create table customers (id bigint primary key, city text, vip boolean)")
        rows = [(number, None if number % 7 == 0 else f"city {number % 3}", number % 2) for number in range(1000)]
        database.executemany("insert into customers values (?, ?, ?)", rows)
        database.execute("create table things (id bigint, at datetime)")
        database.execute("create table odd (id bigint, n bigint)")
        database.execute("insert into odd values (1, 'text')")
        database.commit()
    return made


def test_the_columns_are_those_of_the_table(path):
    assert lookup(path).schema() == pa.schema([("id", pa.int64()), ("city", pa.string()), ("vip", pa.bool_())])


def test_rows_of_more_keys_than_fit_a_query_are_found_and_others_are_not(path):
    table = lookup(path)
    found = table.find(pa.table({"id": range(500, 1500)}), table.schema())
    assert found.schema == table.schema()
    assert sorted(row["id"] for row in found.to_pylist()) == list(range(500, 1000))
    assert table.find(pa.table({"id": [7, 1]}), table.schema()).sort_by("id").to_pylist() == [
        {"id": 1, "city": "city 1", "vip": True},
        {"id": 7, "city": None, "vip": True},
    ]
    assert table.find(pa.table({"id": [-1]}), table.schema()) == table.schema().empty_table()


def test_a_key_may_have_several_columns_and_several_rows(path):
    table = lookup(path)
    keys = pa.table({"city": ["city 1", "city 2"], "vip": [True, False]})
    found = table.find(keys, table.schema()).select(["city", "vip"]).to_pylist()
    assert {(row["city"], row["vip"]) for row in found} == {("city 1", True), ("city 2", False)}
    assert len(found) > 200


def test_what_cannot_be_read_is_said(path, tmp_path):
    with pytest.raises(ConfigError, match="there is no table 'nobody'"):
        lookup(path, "nobody").schema()
    with pytest.raises(ConfigError, match="column 'at' is datetime, not one of bigint, double"):
        lookup(path, "things").schema()
    odd = lookup(path, "odd")
    with pytest.raises(DataError, match="has a value of another type than its column"):
        odd.find(pa.table({"id": [1]}), odd.schema())
    with pytest.raises(ExternalError, match="the database fails: unable to open"):
        lookup(tmp_path / "none.db").schema()
    assert not (tmp_path / "none.db").exists()


def test_tables_of_two_files_are_kept_apart(path, tmp_path):
    assert lookup(path).cache_key() == lookup(path).cache_key() != lookup(tmp_path / "other.db").cache_key()


def test_somebody_who_is_not_trusted_looks_at_files_of_a_root_only(path, tmp_path):
    with in_force(PlanningPolicy(is_untrusted=True, roots=(tmp_path,))):
        assert lookup(path).schema().names == ["id", "city", "vip"]
    with in_force(PlanningPolicy(is_untrusted=True)), pytest.raises(RefusedError, match="untrusted mode refuses"):
        lookup(path)
