from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.errors import OperatorError

from .support.committed_epochs import commit, committed_letters, run_and_commit

SCHEMA = {"n": "int64", "s": "string"}


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ('{"n": 1', "begins with { and ends with }"),
        ('{"n": "x"}', "changed from number to string"),
        ('{"n": 1.5}', "couldn't parse:1.5"),
        ("[1]", "begins with { and ends with }"),
        ("null", "begins with { and ends with }"),
        ('{"n": 1}{"n": 2}', "2 records on 1 line"),
        ("nonsense", "begins with { and ends with }"),
    ],
)
def test_a_bad_json_line_fails_with_file_line_reason_and_text(
    files: Any, tmp_path: Path, bad: str, reason: str
) -> None:
    (tmp_path / "a.json").write_text(f'{{"n": 1}}\n\n{{"n": 2}}\n{bad}\n{{"n": 3}}\n')
    with pytest.raises(OperatorError) as raised:
        files.read(tmp_path, schema=SCHEMA)
    text = str(raised.value)
    assert f"{tmp_path}/a.json:4: " in text
    assert reason in text
    assert text.endswith(f": {bad}")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("1", "Expected 2 columns, got 1"),
        ("1,2,3", "Expected 2 columns, got 3"),
        ("x,2", "invalid value 'x'"),
        ('"1,2', "a quoted value does not end on its line; where values contain line ends, set newlines_in_values"),
        ('1,"2', "a quoted value does not end on its line; where values contain line ends, set newlines_in_values"),
    ],
)
def test_a_bad_csv_line_fails_with_file_line_reason_and_text(files: Any, tmp_path: Path, bad: str, reason: str) -> None:
    (tmp_path / "a.csv").write_text(f"n,s\n1,a\n{bad}\n2,b\n")
    with pytest.raises(OperatorError) as raised:
        files.read(tmp_path, schema=SCHEMA)
    text = str(raised.value)
    assert f"{tmp_path}/a.csv:3: " in text
    assert reason in text
    assert text.endswith(f": {bad}")


def test_a_quoted_line_end_is_bad_unless_it_is_allowed(files: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('n,s\n1,"a\nb"\n2,c\n')
    with pytest.raises(OperatorError, match=r"a\.csv:2: "):
        files.read(tmp_path, schema=SCHEMA)
    read = files.read(tmp_path, schema=SCHEMA, csv={"newlines_in_values": True})
    assert read.to_pylist() == [{"n": 1, "s": "a\nb"}, {"n": 2, "s": "c"}]


def test_a_quote_inside_a_plain_value_is_a_character(files: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('n,s\n1,6" pipe\n2,7" pipe\n3,8" pipe\n')
    for batch_rows in (1, 2, 3):
        read = files.read(tmp_path, schema=SCHEMA, batch_rows=batch_rows)
        assert read["s"].to_pylist() == ['6" pipe', '7" pipe', '8" pipe']


def test_text_that_is_not_utf8_is_bad(files: Any, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'{"s": "good"}\n{"s": "\xff"}\n')
    harness = files.source(tmp_path, schema={"s": "string"}, bad_data="drop")
    done = harness.run()
    harness.close()
    assert done.table.to_pylist() == [{"s": "good"}]
    assert done.counters == {"bad_rows": 1}
    assert "a.json:2: " in done.warnings[0]


def test_a_long_bad_line_is_shown_in_part(files: Any, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("x" * 5000 + "\n")
    with pytest.raises(OperatorError) as raised:
        files.read(tmp_path, schema=SCHEMA)
    assert "xxx... (5000 bytes)" in str(raised.value)
    assert len(str(raised.value)) < 500


#: True for a good line.
LINES = st.lists(st.booleans(), min_size=1, max_size=60)


@given(
    lines=LINES,
    split_size=st.integers(5, 500),
    batch_rows=st.integers(1, 30),
    parallelism=st.integers(1, 3),
    is_compressed=st.booleans(),
    epoch_rows=st.integers(1, 40),
)
def test_every_bad_line_becomes_one_dead_letter_and_every_good_one_a_row(
    files: Any,
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[bool],
    split_size: int,
    batch_rows: int,
    parallelism: int,
    is_compressed: bool,
    epoch_rows: int,
) -> None:
    folder = tmp_path_factory.mktemp("bad")
    written = [f'{{"n": {n}}}' if good else f'{{"n": bad {n}}}' for n, good in enumerate(lines, start=1)]
    text = ("\n".join(written) + "\n").encode()
    path = folder / ("a.jsonl.gz" if is_compressed else "a.jsonl")
    path.write_bytes(gzip.compress(text) if is_compressed else text)
    letters = folder / "letters"
    config = {
        "schema": {"n": "int64"},
        "bad_data": "dead_letter",
        "dead_letter": str(letters),
        "split_size": split_size,
        "batch_rows": batch_rows,
    }
    rows = run_and_commit(files, path, config, parallelism=parallelism, epoch_rows=epoch_rows)
    assert sorted(rows) == [n for n, good in enumerate(lines, start=1) if good]
    found = sorted(committed_letters(letters), key=lambda letter: letter["line"])
    assert [letter["line"] for letter in found] == [n for n, good in enumerate(lines, start=1) if not good]
    assert all(letter["text"] == written[letter["line"] - 1] for letter in found)
    assert all(letter["file"] == str(path) and letter["error"] for letter in found)
    assert all(letter["operator"] == "filesystem.source" and letter["time"].startswith("20") for letter in found)
    assert all(set(letter) > {"pipeline", "node", "plugin", "epoch", "subtask"} for letter in found)
    assert not (letters / "_arroyo_staging").exists()


def test_dead_letters_are_invisible_until_their_epoch_is_committed(files: Any, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("bad\n")
    letters = tmp_path / "letters"
    config = {"schema": {"n": "int64"}, "bad_data": "dead_letter", "dead_letter": str(letters)}
    harness = files.source(tmp_path / "a.json", **config)
    harness.run()
    assert not list(letters.glob("bad-*"))
    commit(files, tmp_path / "a.json", config, harness)
    commit(files, tmp_path / "a.json", config, harness)
    harness.close()
    assert len(list(letters.glob("bad-*"))) == 1


def test_a_source_without_dead_letters_commits_nothing(files: Any, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"n": 1}\n')
    assert not files.make_source(tmp_path).inner.is_committing()
