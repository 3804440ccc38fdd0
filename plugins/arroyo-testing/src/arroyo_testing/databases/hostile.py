"""Names and values that are SQL: none of them is run, whatever the database."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
import pytest

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.updating import make_updates, row_ids, with_updating
from arroyo_core.errors import ConfigError
from arroyo_testing.databases.sink import SinkDatabase

NAMES = ["a{quote}; drop table victims; --", "a'); drop table victims; --", "%s", "100%", "%(name)s", "a\\"]
NAMES += ["a b\n--", "$1 {{0}}"]
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
TABLES = ["totals; drop table victims", "totals (n) select 1; --", "(select 1)", "totals--", "totals/**/", "totals\n"]
TABLES += ["a.b.c.d", "'totals'", "{quote}totals", "totals\0"]


class HostileSinkSuite:
    """For a class of tests that has the fixture `database`, a `SinkDatabase`."""

    #: What stands around names.
    quote: ClassVar[str]

    @pytest.mark.parametrize("name", NAMES)
    def test_names_of_columns_and_values_are_not_run(self, database: SinkDatabase, name: str) -> None:
        name = name.format(quote=self.quote)
        database.execute("create table victims (n int)")
        schema = pa.schema({name: pa.string(), "n": pa.int64()})
        stream = with_updating(ArroyoSchema(schema))
        given = [{name: value, "n": place} for place, value in enumerate(VALUES)]
        rows = pa.RecordBatch.from_pylist(given, schema)
        gone = rows.slice(0, 3)
        with database.harness(stream, mode="upsert", keys=[name], create_table=True) as life:
            for batch, is_retract in ((rows, False), (gone, True)):
                life.process(make_updates(batch, is_retract=is_retract, ids=row_ids(batch, [name])))
                life.commit(life.checkpoint())
                life.go_on()
        assert database.execute("select count(*) from victims") == [(0,)]
        assert sorted(database.execute("select n from totals")) == [(place,) for place in range(3, len(VALUES))]
        quoted = self.quote + name.replace(self.quote, 2 * self.quote) + self.quote
        assert sorted(row[0] for row in database.execute(f"select {quoted} from totals")) == sorted(VALUES[3:])

    @pytest.mark.parametrize("field", ["table", "token_table"])
    @pytest.mark.parametrize("name", TABLES)
    def test_names_of_tables_that_are_more_than_names_are_refused(
        self, database: SinkDatabase, field: str, name: str
    ) -> None:
        with pytest.raises(ConfigError, match="not the name of a table") as caught:
            database.make(None, **{field: name.format(quote=self.quote)})
        assert caught.value.field == field
