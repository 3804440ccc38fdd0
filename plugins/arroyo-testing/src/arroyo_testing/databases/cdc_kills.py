"""A job that reads a table while it changes, killed with SIGKILL at any moment: the results are those of the table."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import ClassVar

from arroyo_testing.databases.cdc_table import CdcTable, MakeTable
from arroyo_testing.databases.materialized import Materialized
from arroyo_testing.waiting import wait_until

KILLS = int(os.environ.get("CDC_KILLS", "4"))
ROWS = 3000


class Writer:
    """Changes rows of a table in transactions of many sizes, until it is stopped."""

    def __init__(self, made: CdcTable) -> None:
        self._made = made
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.transactions = 0

    def _write(self) -> None:
        chance = random.Random(7)
        made = self._made
        with closing(made.server.connect()) as connection, closing(connection.cursor()) as cursor:
            while not self._ends.is_set():
                cursor.execute("begin")
                for _ in range(chance.choice([1, 1, 1, 5, 300])):
                    key, other = chance.randrange(ROWS), chance.randrange(ROWS, 2 * ROWS)
                    statement = chance.choice(
                        [
                            f"update $t set name = concat(name, '.') where id = {key}",
                            f"delete from $t where id = {key}",
                            made.put(key, "new"),
                            made.add_missing(other, "behind"),
                            f"delete from $t where id = {other}",
                        ]
                    )
                    cursor.execute(statement.replace("$t", made.name))
                cursor.execute("commit")
                self.transactions += 1
                self._ends.wait(0.05)  # what it writes in the time of a start is read in the time of a start

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()


class CdcKillSuite:
    """For a class of tests that has the fixture `table`, of the type `MakeTable`."""

    #: The source, as pipelines call it.
    operator: ClassVar[str]

    def test_a_job_that_is_killed_again_and_again_gives_what_the_table_has(
        self, table: MakeTable, tmp_path: Path
    ) -> None:
        made = table()
        made.fill(ROWS, first=0)
        # YAML has JSON in it.
        (tmp_path / "kills.yaml").write_text(json.dumps(self._pipeline(made)))
        chance = random.Random(11)
        with Writer(made) as writer:
            for _ in range(KILLS):
                _run_for(tmp_path, len(_committed(tmp_path)) + chance.randrange(1, 10))
        assert writer.transactions > KILLS
        expected = made.rows()
        with _job(tmp_path) as process:
            wait_until(
                lambda: _materialize(tmp_path).rows() == expected or process.poll() is not None,
                interval_s=0.5,
                problem=lambda: (tmp_path / "log").read_text()[-3000:],
            )
            assert process.poll() is None, (tmp_path / "log").read_text()[-3000:]
        _materialize(tmp_path).check(expected)

    def _pipeline(self, made: CdcTable) -> dict[str, object]:
        return {
            "name": "kills",
            "parallelism": 2,
            "checkpoint": {"url": "./state", "interval": "100ms", "rows": 400},
            "nodes": [
                {"id": "orders", "operator": self.operator, "config": made.fields(chunk_rows=250)},
                {
                    "id": "out",
                    "operator": "filesystem.sink",
                    "inputs": ["orders"],
                    "config": {"path": "./out", "format": "debezium_json"},
                },
            ],
        }


@contextmanager
def _job(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The job in a process of its own; killed at the end, if it has not been."""
    command = [sys.executable, "-m", "arroyo_core", "run", "kills.yaml", "--in-process", "--progress", "none"]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _committed(folder: Path) -> list[Path]:
    """The files of all epochs that are committed, in their order."""
    manifests = []
    for path in (folder / "out" / "_committed").glob("*.json"):
        found = json.loads(path.read_bytes())
        if found["complete"]:
            manifests.append((found["epoch"], [folder / "out" / file["path"] for file in found["files"]]))
    return [path for _, paths in sorted(manifests) for path in paths]


def _materialize(folder: Path) -> Materialized:
    """What is there after the changes of all committed files."""
    result = Materialized()
    for path in _committed(folder):
        for line in path.read_text().splitlines():
            change = json.loads(line)
            result.change(change["before"], change["after"])
    return result


def _run_for(folder: Path, files: int) -> None:
    """Run the job until there are so many files, and kill it."""
    with _job(folder) as process:
        wait_until(
            lambda: len(_committed(folder)) >= files or process.poll() is not None,
            problem=lambda: (folder / "log").read_text()[-3000:],
        )
        assert process.poll() is None, (folder / "log").read_text()[-3000:]
