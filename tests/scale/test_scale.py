"""The tool for the edges of size works: a small job is run, and its memory, calls and bytes are told."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from .edges import EDGES, Size
from .measuring import SHOWN, STOP_AFTER, measure
from .report import report

PLUGIN = Path(__file__).with_name("plugin")


@pytest.mark.timeout(600)
def test_a_small_edge_is_exact_and_measured(tmp_path):
    run = measure(EDGES["files"], Size(0.001), tmp_path / "run")
    print(report([run]))
    assert run.problem == ""
    assert run.epochs > STOP_AFTER
    assert set(SHOWN) <= set(run.peak_bytes)
    assert all(run.peak_bytes[kind] > 2**20 for kind in SHOWN)
    state, read = run.traffic["state"], run.traffic["in"]
    assert state.calls["create"] >= run.epochs
    assert 0 < state.largest_bytes <= state.written_bytes
    assert read.calls["read"] >= 100
    assert "| files | state |" in report([run])


def test_an_output_that_is_wrong_is_told(tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(Exception, match="No files found"):
        EDGES["files"].problem(Size(0.001), tmp_path)


@pytest.fixture
def counted(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(PLUGIN))
    monkeypatch.setenv("ARROYO_COUNTED_CALLS", str(tmp_path))
    return importlib.import_module("counted_files").CountedFileSystem(skip_instance_cache=True)


def test_a_create_is_exclusive_and_calls_are_noted(counted, tmp_path):
    place = f"counted://{tmp_path}/some/file"
    counted.pipe_file(place, b"one", mode="create")
    with pytest.raises(FileExistsError):
        counted.pipe_file(place, b"two", mode="create")
    with counted.open(f"{place}-2", "wb") as file:
        file.write(b"four")
    with counted.open(place, "rb") as file:
        assert file.read() == b"one"
    counted.rm(f"counted://{tmp_path}/some", recursive=True)
    assert not (tmp_path / "some").exists()
    (lines,) = [path.read_text().splitlines() for path in tmp_path.glob("calls-*.txt")]
    kinds = [line.split()[:2] for line in lines]
    assert kinds[:3] == [["create", "3"], ["create", "3"], ["write", "4"]]
    assert ["read", "3"] in kinds
    assert kinds.count(["delete", "0"]) == 2
