"""A job that reads a table while it changes, killed with SIGKILL at any moment: the results are those of the table."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from arroyo_mysql.cdc.open_streams import open_streams

from tests.materialized import Materialized
from tests.mysql_server import MysqlServer
from tests.waiting import wait_until

from .support import Table

pytestmark = pytest.mark.server

MakeTable = Callable[..., Table]
KILLS = int(os.environ.get("CDC_KILLS", "4"))
ROWS = 3000

PIPELINE = """
name: kills
parallelism: 2
checkpoint: {{url: ./state, interval: 100ms, rows: 1000}}
nodes:
  - id: orders
    operator: mysql.cdc
    config:
      connection: {connection}
      table: {table}
      chunk_rows: 250
  - id: out
    operator: filesystem.sink
    inputs: [orders]
    config: {{path: ./out, format: debezium_json}}
"""


class Writer:
    """Changes rows of a table in transactions of many sizes, until it is stopped."""

    def __init__(self, made: Table) -> None:
        self._made = made
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.transactions = 0

    def _write(self) -> None:
        chance = random.Random(7)
        name = self._made.name
        with closing(self._made.server.connect()) as connection, connection.cursor() as cursor:
            while not self._ends.is_set():
                cursor.execute("begin")
                for _ in range(chance.choice([1, 1, 1, 5, 200])):
                    key, other = chance.randrange(ROWS), chance.randrange(ROWS, 2 * ROWS)
                    statement = chance.choice(
                        [
                            f"update {name} set name = concat(name, '.') where id = {key}",
                            f"delete from {name} where id = {key}",
                            f"insert into {name} values ({key}, 'new') on duplicate key update name = 'x'",
                            f"insert ignore into {name} values ({other}, 'behind')",
                            f"delete from {name} where id = {other}",
                        ]
                    )
                    cursor.execute(statement)
                cursor.execute("commit")
                self.transactions += 1
                self._ends.wait(0.05)  # what it writes in the time of a start is read in the time of a start

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()


@contextmanager
def job(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The job in a process of its own; killed at the end, if it has not been."""
    command = [sys.executable, "-m", "arroyo_core", "run", "kills.yaml", "--in-process", "--progress", "none"]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def committed(folder: Path) -> list[Path]:
    """The files of all epochs that are committed, in their order."""
    manifests = []
    for path in (folder / "out" / "_committed").glob("*.json"):
        found = json.loads(path.read_bytes())
        if found["complete"]:
            manifests.append((found["epoch"], [folder / "out" / file["path"] for file in found["files"]]))
    return [path for _, paths in sorted(manifests) for path in paths]


def materialize(folder: Path) -> Materialized:
    """What is there after the changes of all committed files."""
    result = Materialized()
    for path in committed(folder):
        for line in path.read_text().splitlines():
            change = json.loads(line)
            result.change(change["before"], change["after"])
    return result


def run_for(folder: Path, files: int) -> None:
    """Run the job until there are so many files, and kill it."""
    with job(folder) as process:
        wait_until(
            lambda: len(committed(folder)) >= files or process.poll() is not None,
            problem=lambda: (folder / "log").read_text()[-3000:],
        )
        assert process.poll() is None, (folder / "log").read_text()[-3000:]


def test_a_job_that_is_killed_again_and_again_gives_what_the_table_has(
    table: MakeTable, server: MysqlServer, tmp_path: Path
) -> None:
    made = table()
    made.fill(ROWS, first=0)
    (tmp_path / "kills.yaml").write_text(PIPELINE.format(connection=json.dumps(server.config), table=made.name))
    chance = random.Random(11)
    with Writer(made) as writer:
        for _ in range(KILLS):
            run_for(tmp_path, len(committed(tmp_path)) + chance.randrange(1, 10))
    assert writer.transactions > KILLS
    expected = made.rows()
    with job(tmp_path) as process:
        wait_until(
            lambda: materialize(tmp_path).rows() == expected or process.poll() is not None,
            interval_s=0.5,
            patience_s=300,
            problem=lambda: (tmp_path / "log").read_text()[-3000:],
        )
        assert process.poll() is None, (tmp_path / "log").read_text()[-3000:]
    materialize(tmp_path).check(expected)
    open_streams.close_all()
