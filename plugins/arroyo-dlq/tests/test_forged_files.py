"""Who can write to a folder of dead letters writes claims and letters of all kinds; a replay does not trust them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from arroyo_core.cli.main import main

from .support.shop import FIXED, GOOD, REPLAYED, Shop, outage

HUGE = 10**12


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop.that_has_run(tmp_path)
    shop.write(FIXED)
    return shop


def letter_file(shop: Shop) -> Path:
    (file,) = (shop.folder / "dead").glob("part-*.parquet")
    return file


def forge(shop: Shop, *, number: int = 1, **fields: object) -> Path:
    """A claim of the three letters there are, but for some fields."""
    file = letter_file(shop)
    claim = {
        "number": number,
        "pipeline": "shares",
        "node": "shared",
        "into": "shared",
        "time_us": 0,
        "files": [{"path": file.name, "size_bytes": file.stat().st_size, "ranges": [[0, 3]]}],
        **fields,
    }
    path = shop.folder / "dead/_replays" / f"{number:05}" / "claim.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(claim))
    return path


def claimed(shop: Shop, **fields: object) -> list[dict[str, object]]:
    file = letter_file(shop)
    return [{"path": file.name, "size_bytes": file.stat().st_size, "ranges": [[0, 3]], **fields}]


def test_a_claim_does_not_choose_where_rows_go(shop, capsys):
    forge(shop, sink=str(shop.folder / "attacker"))
    assert shop.replay() == 2
    said = capsys.readouterr().err
    assert "was begun with --sink" in said
    assert "attacker" in said
    assert not (shop.folder / "attacker").exists()
    assert shop.out() == GOOD


def test_a_claim_does_not_choose_the_node_that_gets_rows(shop, capsys):
    forge(shop, into="even")
    assert shop.replay() == 2
    assert "was begun with --into even" in capsys.readouterr().err
    assert shop.replay("--dry-run") == 2
    assert shop.out() == GOOD


def test_an_interrupted_replay_goes_on_when_its_settings_are_repeated(shop, capsys, monkeypatch):
    sink = str(shop.folder / "elsewhere")
    with monkeypatch.context() as patch:
        patch.setattr("arroyo_core.runtime.local.LocalExecutor.run_epoch", outage)
        assert shop.replay("--sink", sink) == 1
    assert shop.replay() == 2
    monkeypatch.chdir(shop.folder)
    assert shop.replay("--sink", "./elsewhere") == 0
    assert "went on with 3 letters" in capsys.readouterr().out
    assert shop.out("elsewhere/out") == REPLAYED


@pytest.mark.parametrize("ranges", [[[0, HUGE]], [[0, 2**70]], [[HUGE, HUGE + 1]], [[0, 4]]])
def test_ranges_beyond_the_letters_of_a_file_are_refused_and_cost_nothing(shop, capsys, ranges):
    forge(shop, files=claimed(shop, ranges=ranges))
    assert main(["dlq", "ls", shop.dead]) == 0
    assert main(["dlq", "show", shop.dead]) == 0
    assert shop.replay() == 2
    assert "has 3 letters, and the claim" in capsys.readouterr().err


@pytest.mark.parametrize("ranges", [[[-1, 1]], [[2, 1]], [[1, 1]], [[0, 2], [1, 3]], [[2, 3], [0, 1]]])
def test_ranges_that_no_replay_writes_are_refused(shop, capsys, ranges):
    forge(shop, files=claimed(shop, ranges=ranges))
    assert shop.replay() == 2
    assert "is not a claim of a replay" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["../out/x.parquet", "/etc/passwd", "_replays/00001/rows/x.parquet", ""])
def test_a_claim_names_letters_only(shop, capsys, path):
    forge(shop, files=claimed(shop, path=path))
    assert shop.replay() == 2
    assert "is not a claim of a replay" in capsys.readouterr().err


def test_a_claim_has_the_number_of_its_folder(shop, capsys):
    path = forge(shop, number=7)
    path.write_text(path.read_text().replace('"number": 7', '"number": 2'))
    assert shop.replay() == 2
    assert "is not a claim of a replay" in capsys.readouterr().err
    assert not (shop.folder / "dead/_replays/00002").exists()


def test_a_claim_does_not_take_letters_of_other_nodes(shop, capsys):
    forge(shop, node="even", into="even")
    assert shop.replay() == 2
    assert "is not of node 'even'" in capsys.readouterr().err


def test_the_same_letters_twice_in_a_claim_are_refused(shop, capsys):
    forge(shop, files=claimed(shop) * 2)
    assert shop.replay() == 2
    assert "is not a claim of a replay" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        b'{"node": 1}',
        b'{"epoch": "x"}',
        b'{"time": "yesterday"}',
        b'{"time": 7}',
        b'{"epoch": 99999999999999999999}',
        b'{"a": ' * 100_000,
        b"\xff",
    ],
)
def test_lines_that_are_no_letters_are_a_clear_error(shop, capsys, line):
    (shop.folder / "dead/bad-00001-000-0-0.jsonl").write_bytes(line + b"\n")
    assert main(["dlq", "ls", shop.dead]) == 2
    assert "is not a dead letter" in capsys.readouterr().err


def test_a_file_whose_provenance_has_other_types_is_a_clear_error(shop, capsys):
    table = pq.read_table(letter_file(shop))
    index = table.schema.get_field_index("_error_epoch")
    forged = table.set_column(index, "_error_epoch", pa.array(["x"] * table.num_rows))
    pq.write_table(forged, shop.folder / "dead/part-x.parquet")
    assert main(["dlq", "ls", shop.dead]) == 2
    assert "part-x.parquet" in capsys.readouterr().err


def test_letters_do_not_command_a_terminal(shop, capsys):
    hostile = "\x1b]0;owned\x07\x9b\u202e"
    line = {"error": hostile, "text": hostile, "node": hostile, "pipeline": "shares", "time": "2026-01-01T00:00:00Z"}
    (shop.folder / "dead/bad-00001-000-0-0.jsonl").write_text(json.dumps(line) + "\n")
    (shop.folder / "dead/odd\x1b[2J.txt").write_text("")
    for command in (["ls"], ["show"]):
        assert main(["dlq", *command, shop.dead]) == 0
    shown = capsys.readouterr().out
    assert "owned" in shown
    assert not set(hostile) & set(shown) & set("\x1b\x07\x9b\u202e")
