import json

from acme_sqlite import SqliteSink, SqliteSinkConstructor

from arroyo_core.plugin import hookimpl
from arroyo_core.state import FencedError


class SqliteLatest(SqliteSink):
    """The last row of each word."""

    def name(self):
        return "acme.latest"

    def routing_keys(self, inputs):
        return [("word",)]  # the rows of a word in their order, in one subtask

    def write(self, database, lines, ctx):
        database.execute("create table if not exists latest (word text primary key, row text)")
        database.execute(
            "create table if not exists fence "
            "(incarnation text, node text, generation int, epoch int, primary key (incarnation, node))"
        )
        token = ctx.token
        taken = database.execute(
            "insert into fence values (?, ?, ?, ?) on conflict (incarnation, node) do update "
            "set generation = excluded.generation, epoch = excluded.epoch "
            "where (excluded.generation, excluded.epoch) >= (fence.generation, fence.epoch)",
            (token.incarnation, ctx.task_info.operator_id, token.generation, token.epoch),
        )
        if not taken.rowcount:
            raise FencedError(f"{self._path} has rows of a newer driver than {token}: this one must stop")
        rows = [(json.dumps(json.loads(line)["word"]), line) for line in lines]
        database.executemany("insert or replace into latest values (?, ?)", rows)


class SqliteLatestConstructor(SqliteSinkConstructor):
    sink = SqliteLatest


@hookimpl
def arroyo_register(registry):
    registry.add("acme.latest", SqliteLatestConstructor())
