"""Scripts over two tables in Parquet files: planned, or run in this process."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from arroyo_sql.planned import Node
from arroyo_sql.planner import plan_script
from arroyo_sql.statements import read_script
from arroyo_testing import run_in_process

from arroyo_core.errors import PipelineError
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.substitution import References
from arroyo_core.plugin import installed_plugins
from arroyo_core.udf import UserFunction

START = datetime(2024, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("item", pa.string()),
        ("price", pa.float64()),
        ("count", pa.int32()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
COLUMNS = "id BIGINT, item TEXT, price DOUBLE, count INT, at TIMESTAMP"


def tables(folder: Path) -> str:
    """DDL of `orders` and `returns`, read from a folder."""
    return "".join(
        f"CREATE TABLE {name} ({COLUMNS}, WATERMARK FOR at AS at - INTERVAL '1 second') "
        f"WITH (connector = 'filesystem', type = 'source', path = '{folder / name}', format = 'parquet');\n"
        for name in ("orders", "returns")
    )


def write(folder: Path, table: str, rows: list[tuple[Any, ...]]) -> None:
    """Rows of a table; the last value is the second of the event time."""
    (folder / table).mkdir(parents=True)
    timed = [(*row[:-1], START + timedelta(seconds=row[-1])) for row in rows]
    columns = {name: [row[index] for row in timed] for index, name in enumerate(SCHEMA.names)}
    pq.write_table(pa.Table.from_pydict(columns, schema=SCHEMA), folder / table / "rows.parquet")


@dataclass(frozen=True, slots=True)
class Planned:
    nodes: tuple[Node, ...]
    mistakes: list[PipelineError]

    @property
    def steps(self) -> list[str]:
        """Ids and operators."""
        return [f"{node.id} {node.operator}" for node in self.nodes]

    def node(self, id: str) -> Node:
        return next(node for node in self.nodes if node.id == id)

    def only(self, operator: str) -> Node:
        found = [node for node in self.nodes if node.operator == operator]
        assert len(found) == 1, self.steps
        return found[0]

    @property
    def refusal(self) -> PipelineError:
        assert len(self.mistakes) == 1, self.mistakes
        return self.mistakes[0]


@cache
def _no_rows() -> Path:
    """A folder with both tables, which have no rows."""
    folder = Path(mkdtemp())
    for name in ("orders", "returns"):
        write(folder, name, [])
    return folder


def plan(script: str, folder: Path | None = None, *, functions: Sequence[UserFunction] = ()) -> Planned:
    """The plan of a script after the DDL of the two tables."""
    plugins = installed_plugins()
    if functions:
        plugins = replace(plugins, registry=plugins.registry.with_udfs(functions))
    folder = folder or _no_rows()
    mistakes = Mistakes()
    references = References(Environment({}))
    text = tables(folder) + script
    reading = read_script(text, file="q.sql", references=references, mistakes=mistakes)
    found = plan_script(reading.script, plugins=plugins, mistakes=mistakes)
    return Planned(found.nodes if found is not None else (), mistakes.sorted())


#: Where a script behind the DDL begins.
FIRST_LINE = 3


def run(query: str, folder: Path, *, before: str = "") -> list[tuple[Any, ...]]:
    """The rows that are left when all of a query's changes are made, in order."""
    out = folder / "out"
    is_changing = True
    for is_changing in (False, True):
        kind = "debezium_json" if is_changing else "parquet"
        script = (
            f"SET name = 'query'; SET checkpoint.url = '{folder / 'state'}';\n{tables(folder)}{before}\n"
            f"CREATE TABLE out WITH (connector = 'filesystem', type = 'sink', path = '{out}', format = '{kind}');\n"
            f"INSERT INTO out {query};"
        )
        file = folder / f"{kind}.sql"
        file.write_text(script)
        planned = plan(
            f"{before}\nCREATE TABLE out WITH (connector = 'filesystem', type = 'sink', path = '{out}', "
            f"format = '{kind}');\nINSERT INTO out {query};",
            folder,
        )
        if planned.nodes:
            break
    assert planned.nodes, planned.mistakes
    run_in_process(file)
    return _changed_rows(out) if is_changing else _rows(out)


def _files(out: Path) -> list[Path]:
    found = [path for path in sorted(out.rglob("*")) if path.is_file() and "_committed" not in path.parts]
    return [path for path in found if not path.name.startswith((".", "_"))]


def _rows(out: Path) -> list[tuple[Any, ...]]:
    rows = [tuple(row.values()) for file in _files(out) for row in pq.read_table(file).to_pylist()]
    return sorted(rows, key=repr)


def _changed_rows(out: Path) -> list[tuple[Any, ...]]:
    """Rows as JSON has them, columns in the order of their names."""
    left: Counter[str] = Counter()
    for file in _files(out):
        for line in file.read_text().splitlines():
            change = json.loads(line)
            for side, sign in (("before", -1), ("after", 1)):
                if change.get(side) is not None:
                    left[json.dumps(sorted(change[side].items()))] += sign
    assert all(count >= 0 for count in left.values()), left
    return sorted((tuple(value for _, value in json.loads(row)) for row in left.elements()), key=repr)
