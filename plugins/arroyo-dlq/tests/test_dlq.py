"""`arroyo dlq`: letters of real runs, in process."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from arroyo_dlq import replay
from arroyo_dlq.claims import put_claim
from arroyo_dlq.replay import Replayer
from arroyo_testing import run_in_process

from arroyo_core.cli.main import main
from arroyo_core.runtime.local import LocalExecutor

from .support.shop import BROKEN, FIXED, GOOD, REPLAYED, ZERO, Shop, outage


@pytest.fixture
def shop(tmp_path):
    return Shop.that_has_run(tmp_path)


def show(shop: Shop, capsys, *arguments: str) -> list[dict]:
    capsys.readouterr()
    assert main(["dlq", "show", shop.dead, "--format", "json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_ls_counts_letters_by_node(shop, capsys):
    assert main(["dlq", "ls", shop.dead, "--format", "json"]) == 0
    (node,) = json.loads(capsys.readouterr().out)["nodes"]
    assert (node["pipeline"], node["node"], node["operator"]) == ("shares", "shared", "std.project")
    assert (node["letters"], node["open"], node["replayed"]) == (3, 3, 0)
    assert node["error"] == "expressions.share: cannot compute '12 / n': divide by zero"
    assert main(["dlq", "ls", shop.dead]) == 0
    assert "divide by zero" in capsys.readouterr().out


def test_show_has_the_row_and_where_it_failed(shop, capsys):
    letters = show(shop, capsys)
    assert sorted(letter["row"]["name"] for letter in letters) == ["order 1", "order 3", "order 6"]
    assert {(letter["node"], letter["epoch"], letter["state"]) for letter in letters} == {("shared", 1, "open")}
    assert letters[0]["plugin"].startswith("arroyo-std ")
    assert len(show(shop, capsys, "--limit", "2")) == 2
    assert show(shop, capsys, "--node", "even") == []
    assert show(shop, capsys, "--error", "overflow") == []
    assert len(show(shop, capsys, "--error", "divide by zero")) == 3
    assert main(["dlq", "show", shop.dead]) == 0
    assert '"name": "order 6"' in capsys.readouterr().out


def test_a_replay_writes_into_the_pipelines_own_sinks_once(shop, capsys):
    assert shop.out() == GOOD
    shop.write(FIXED)
    assert shop.replay() == 0
    assert "replay 1: replayed 3 letters of 'shared'" in capsys.readouterr().out
    assert shop.out() == {**GOOD, **REPLAYED}
    assert shop.replay() == 0
    assert "nothing is replayed" in capsys.readouterr().out
    assert shop.out() == {**GOOD, **REPLAYED}
    assert show(shop, capsys) == []
    assert {letter["state"] for letter in show(shop, capsys, "--all")} == {"replayed"}


def test_rows_that_fail_again_are_new_letters(shop, capsys):
    shop.write(ZERO)
    assert shop.replay() == 0
    assert "some rows failed again" in capsys.readouterr().out
    assert shop.out() == GOOD
    letters = show(shop, capsys)
    assert [(letter["node"], letter["row"]["share"]) for letter in letters] == [("even", 0)] * 3
    shop.write(FIXED, **{"100 % share": "100 % (share + 1)"})
    assert shop.replay() == 0
    assert shop.out() == {**GOOD, **{(name, 0): 1 for name, _ in REPLAYED}}


def test_a_replay_can_take_some_letters_and_leave_the_others(shop, capsys):
    shop.write(FIXED)
    assert shop.replay("--limit", "1") == 0
    assert len(show(shop, capsys)) == 2
    assert shop.replay("--error", "overflow") == 0
    assert len(show(shop, capsys)) == 2
    assert shop.replay("--node", "shared") == 0
    assert shop.out() == {**GOOD, **REPLAYED}


def test_a_limit_counts_letters_of_all_nodes(shop, capsys):
    shop.write(ZERO)
    assert shop.replay("--limit", "2") == 0
    assert Counter(letter["node"] for letter in show(shop, capsys)) == {"shared": 1, "even": 2}
    shop.write(FIXED, **{"100 % share": "100 % (share + 1)"})
    assert shop.replay("--limit", "2") == 0
    assert len(show(shop, capsys)) == 1


def test_sinks_that_are_not_exactly_once_are_warned_of(shop, capsys):
    shop.write(FIXED)
    shop.file.write_text(shop.file.read_text() + "  - {id: shown, operator: std.stdout, inputs: [even]}\n")
    assert shop.replay() == 0
    said = capsys.readouterr()
    assert "warning: rows may come twice, or not at all, in 'shown' (std.stdout) if a replay is interrupted" in said.err
    assert shop.out() == {**GOOD, **REPLAYED}


def test_a_replay_can_write_elsewhere(shop, capsys):
    shop.write(FIXED)
    assert shop.replay("--sink", str(shop.folder / "elsewhere")) == 0
    assert shop.out() == GOOD
    assert shop.out("elsewhere/out") == REPLAYED


def test_letters_in_folders_by_column_are_found_and_replayed(shop, capsys):
    sink = f'inputs: [bad]\n    config: {{path: "{shop.dead}"'
    changes = {"name: shares": "name: parted", sink: f"{sink}, partition_by: [_error_node, n]"}
    shop.write(BROKEN, **changes)
    run_in_process(shop.file)
    assert list((shop.folder / "dead").glob("_error_node=shared/n=0/part-*.parquet"))
    letters = [letter for letter in show(shop, capsys) if letter["pipeline"] == "parted"]
    assert {(letter["node"], letter["row"]["n"]) for letter in letters} == {("shared", "0")}
    shop.write(FIXED, **changes)
    assert shop.replay() == 0
    assert shop.out() == {**dict.fromkeys(GOOD, 2), **REPLAYED}


def test_letters_of_before_there_were_incarnations_are_shown_and_replayed(shop, capsys):
    assert all(len(letter["incarnation"]) == 16 for letter in show(shop, capsys))
    for path in Path(shop.dead).glob("*.parquet"):
        pq.write_table(pq.read_table(path).drop_columns("_error_incarnation"), path)
    assert [letter["incarnation"] for letter in show(shop, capsys)] == [None] * 3
    shop.write(FIXED)
    before = shop.out()
    assert shop.replay() == 0
    assert (shop.out() - before).total() == 3
    assert show(shop, capsys) == []


def test_a_dry_run_changes_nothing(shop, capsys):
    shop.write(FIXED)
    before = sorted(shop.folder.rglob("*"))
    assert shop.replay("--dry-run") == 0
    assert "would replay 3 letters of 'shared' through shared -> even -> out" in capsys.readouterr().out
    assert sorted(shop.folder.rglob("*")) == before


def test_a_replay_that_fails_is_gone_on_with(shop, capsys, monkeypatch):
    shop.write(FIXED)
    with monkeypatch.context() as patch:
        patch.setattr(LocalExecutor, "run_epoch", outage)
        assert shop.replay() == 1
    assert "the store is away" in capsys.readouterr().err
    assert main(["dlq", "ls", shop.dead]) == 0
    assert "replay 1 of 'shared' (3 letters) was interrupted" in capsys.readouterr().out
    assert show(shop, capsys) == []
    assert {letter["state"] for letter in show(shop, capsys, "--all")} == {"claimed"}
    assert shop.replay("--dry-run") == 0
    assert "would go on with replay 1: 3 letters of 'shared'" in capsys.readouterr().out
    assert shop.replay() == 0
    assert "replay 1: went on with 3 letters of 'shared'" in capsys.readouterr().out
    assert shop.out() == {**GOOD, **REPLAYED}


def test_letters_of_a_renamed_pipeline_and_node_are_taken_by_name(shop, capsys):
    shop.write(FIXED, **{"name: shares": "name: parts", "id: shared": "id: parted", "[shared": "[parted"})
    assert shop.replay() == 0
    assert "letters of other pipelines: shares; --job NAME takes them" in capsys.readouterr().out
    assert shop.replay("--job", "shares") == 2
    assert "has no node 'shared'; did you mean 'parted'?" in capsys.readouterr().err
    assert shop.replay("--job", "shares", "--into", "parted") == 0
    assert shop.out() == {**GOOD, **REPLAYED}


WINDOW = """\
  - id: counts
    operator: std.tumbling_window
    inputs: [timed]
    config: {size: 10s, aggregates: [{function: count, as: rows}]}
  - {id: timed, operator: std.watermark, inputs: [even]}
  - id: out
    operator: filesystem.sink
    inputs: [counts]
"""


def test_a_replay_through_state_is_refused_and_goes_up_to_there(shop, capsys):
    shop.write(FIXED)
    text = shop.file.read_text()
    shop.file.write_text(text.replace("  - id: out\n    operator: filesystem.sink\n    inputs: [even]\n", WINDOW))
    assert shop.replay() == 2
    said = capsys.readouterr().err
    assert "would pass 'counts' (std.tumbling_window), where what comes of a row depends on other rows" in said
    assert "--until timed --sink URL" in said
    assert shop.replay("--until", "timed") == 2
    assert "--until needs --sink URL" in capsys.readouterr().err
    assert shop.replay("--until", "nothing", "--sink", str(shop.folder / "x")) == 2
    assert "no row of 'shared' comes to 'nothing'" in capsys.readouterr().err
    assert len(show(shop, capsys)) == 3, "a refused replay claims nothing"
    assert shop.replay("--until", "timed", "--sink", str(shop.folder / "x")) == 0
    assert shop.out("x") == REPLAYED


def test_rows_without_a_column_that_the_pipeline_has_now_are_refused(shop, capsys):
    shop.write(FIXED, **{"n: int64,": "n: int64, colour: string,", "keep: [name, at]": "keep: [name, at, colour]"})
    assert shop.replay() == 2
    assert "have no column 'colour', which 'shared' reads now" in capsys.readouterr().err
    shop.write(FIXED, **{"n: int64": "n: timestamp", "12 / n": "1", "n = 0": "true", "n > -1": "true"})
    assert shop.replay() == 2
    assert "do not fit the input of 'shared': column 'n' is int64, not timestamp" in capsys.readouterr().err
    shop.write(FIXED, **{"name: string": "name: int64"})
    assert shop.replay() == 2
    assert "do not fit the input of 'shared': Failed to parse string: 'order " in capsys.readouterr().err


def test_bad_lines_of_a_source_are_shown_and_not_replayed(shop, capsys):
    (shop.folder / "orders.json").write_text('{"n": 1, "name": "x", "at": 1}\nnonsense\n')
    shop.write(
        FIXED, **{"event_time_field: at": f'event_time_field: at, bad_data: dead_letter, dead_letter: "{shop.dead}"'}
    )
    shop.file.write_text(shop.file.read_text().replace("name: shares", "name: lines"))
    run_in_process(shop.file)
    (letter,) = show(shop, capsys, "--node", "orders")
    assert letter["position"] == f"{shop.folder}/orders.json:2"
    assert letter["row"] == {"text": "nonsense"}
    assert letter["operator"] == "filesystem.source"
    assert shop.replay() == 0
    said = capsys.readouterr().out
    assert "nothing is replayed" in said
    assert "1 line that 'orders' could not read never became rows: fix the text" in said
    assert shop.replay("--node", "orders") == 2
    assert "'orders' (filesystem.source) is a source: what failed there are lines" in capsys.readouterr().err


def test_files_that_are_no_letters_are_named(shop, capsys):
    assert main(["dlq", "ls", str(shop.folder / "out")]) == 0
    said = capsys.readouterr().out
    assert "no dead letters below" in said
    assert "files hold no dead letters, such as part-" in said
    (shop.folder / "dead/part-x.parquet").write_bytes(b"PAR1 and no more")
    assert main(["dlq", "ls", shop.dead]) == 2
    assert "part-x.parquet is not a Parquet file" in capsys.readouterr().err


def test_a_letter_file_that_changed_since_the_claim_is_refused(shop, capsys, monkeypatch):
    shop.write(FIXED)
    with monkeypatch.context() as patch:
        patch.setattr(Replayer, "_store", outage)
        assert shop.replay() == 1
    (file,) = (shop.folder / "dead").glob("part-*.parquet")
    data = file.read_bytes()
    file.unlink()
    capsys.readouterr()
    assert shop.replay() == 2
    assert "is gone, and a replay that was interrupted needs it" in capsys.readouterr().err
    file.write_bytes(data)
    assert shop.replay() == 0
    assert shop.out() == {**GOOD, **REPLAYED}


def test_two_replays_at_once_share_no_letter(shop, monkeypatch):
    """While the first has chosen its letters and not yet claimed them, a second one runs from its start to its end."""
    shop.write(FIXED)
    claimed = []

    def put_claim_late(storage, claim):
        if not claimed:
            claimed.append(claim.number)
            assert shop.replay() == 0
        return put_claim(storage, claim)

    monkeypatch.setattr(replay, "put_claim", put_claim_late)
    assert shop.replay() == 0
    assert shop.out() == {**GOOD, **REPLAYED}


def test_a_claim_that_cannot_be_read_stops_all_replays(shop, capsys):
    shop.write(FIXED)
    assert shop.replay() == 0
    (shop.folder / "dead/_replays/00001/claim.json").write_text("{")
    assert shop.replay() == 2
    assert "nobody knows which letters were replayed" in capsys.readouterr().err
