"""Names and values that are SQL: none of them is run."""

from __future__ import annotations

import pyarrow as pa
import pytest
from arroyo_mysql.names import quoted

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.updating import make_updates, row_ids, with_updating
from arroyo_core.errors import ConfigError
from tests.mysql_server import MysqlServer

from .support import harness, make_sink

pytestmark = pytest.mark.server

NAMES = [
    "a`; drop table victims; --",
    "a'); drop table victims; --",
    "%s",
    "100%",
    "%(name)s",
    "a\\",
    "a b\n--",
    "$1 {0}",
]
VALUES = [
    "'); drop table victims; --",
    "\\'; drop table victims; --",
    '"; drop table victims; --',
    "%s %(n)s {} $1 ? :n",
    "\\N",
    "\\\\.",
    "\n\\.\n",
    "\u02bc \uff07 \xbf' \U0001f980",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_columns_and_values_are_not_run(database: MysqlServer, name):
    database.execute("create table victims (n int)")
    schema = pa.schema({name: pa.string(), "n": pa.int64()})
    stream = with_updating(ArroyoSchema(schema))
    given = [{name: value, "n": place} for place, value in enumerate(VALUES)]
    rows = pa.RecordBatch.from_pylist(given, schema)
    gone = rows.slice(0, 3)
    with harness(database, stream, mode="upsert", keys=["n"], create_table=True) as life:
        for batch, is_retract in ((rows, False), (gone, True)):
            life.process(make_updates(batch, is_retract=is_retract, ids=row_ids(batch, ["n"])))
            life.commit(life.checkpoint())
            life.go_on()
    assert database.execute("select count(*) from victims") == [(0,)]
    assert sorted(database.execute("select n from totals")) == [(place,) for place in range(3, len(VALUES))]
    assert sorted(row[0] for row in database.execute(f"select {quoted(name)} from totals")) == sorted(VALUES[3:])


@pytest.mark.parametrize("field", ["table", "token_table"])
@pytest.mark.parametrize(
    "name",
    [
        "totals; drop table victims",
        "totals (n) select 1; --",
        "(select 1)",
        "totals--",
        "totals/**/",
        "totals\n",
        "a.b.c.d",
        "'totals'",
        "`totals",
        "totals\0",
    ],
)
def test_names_of_tables_that_are_more_than_names_are_refused(database: MysqlServer, field, name):
    with pytest.raises(ConfigError, match="not the name of a table") as caught:
        make_sink(database, **{field: name})
    assert caught.value.field == field
