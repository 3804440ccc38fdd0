"""A full disk is told with the path that could not be written; `/dev/full` is one."""

from __future__ import annotations

import contextlib
import errno
from pathlib import Path

import pytest
from arroyo_filesystem.staging import Staging

from arroyo_core.cli.main import main
from arroyo_core.errors import naming_path

FULL = Path("/dev/full")

pytestmark = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full on this system")

PIPELINE = """\
name: full
checkpoint: {url: FOLDER/state}
nodes:
  - {id: numbers, operator: impulse.source, config: {count: 10}}
  - {id: out, operator: filesystem.sink, inputs: [numbers], config: {path: FOLDER/out, format: json}}
"""


def write_to(path, file=FULL):
    with naming_path(path), file.open("wb", buffering=0) as stream:
        stream.write(b"x")


def test_an_error_without_a_path_gets_it():
    with pytest.raises(OSError, match=r"No space left on device: 'orders\.json'") as raised:
        write_to("orders.json")
    assert raised.value.errno == errno.ENOSPC


def test_an_error_with_a_path_keeps_it(tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        write_to("orders.json", tmp_path / "missing" / "file")
    assert raised.value.filename == str(tmp_path / "missing" / "file")


@pytest.mark.usefixtures("own_logging")
def test_a_sink_tells_which_file_the_disk_has_no_room_for(tmp_path, monkeypatch, capfd):
    opened = []

    def create(self, path):
        opened.append(FULL.open("wb", buffering=2**20))
        return opened[-1]

    monkeypatch.setattr(Staging, "_create", create)
    path = tmp_path / "full.yaml"
    path.write_text(PIPELINE.replace("FOLDER", str(tmp_path)))
    assert main(["run", str(path), "--in-process", "--max-restarts", "0"]) == 1
    for stream in opened:
        with contextlib.suppress(OSError):
            stream.close()
    shown = capfd.readouterr().err
    assert f"No space left on device: '{tmp_path}/out/_arroyo_staging/full.out." in shown


def test_a_table_that_cannot_be_written_names_its_file(tmp_path, capsys):
    path = tmp_path / "full.yaml"
    path.write_text(PIPELINE.replace("FOLDER", str(tmp_path)))
    assert main(["run", str(path), "--in-process", "--progress", "none"]) == 0
    # Not as Parquet: pyarrow deletes what it could not write, and root may delete a device.
    assert main(["state", "cat", f"{tmp_path}/state", "numbers.s", "--format", "csv", "-o", str(FULL)]) == 1
    assert "'/dev/full'" in capsys.readouterr().err
