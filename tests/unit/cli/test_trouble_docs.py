"""The examples of docs/trouble.md, in order: files are written, commands run, and what they print is what is shown."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from arroyo_core.cli.main import main

from ...document_pages import read_commands, shown_pattern

PAGE = Path(__file__).parents[3] / "docs" / "trouble.md"
STEP = re.compile(r"^```(\w+)\n(.*?)^```|^<!-- (a byte of .*?) -->", re.MULTILINE | re.DOTALL)


def run_console(block: str, capsys) -> int:
    """Run the commands of a block, and compare what each prints."""
    commands = list(read_commands(block))
    for command in commands:
        _, *arguments = shlex.split(command.line)
        if arguments[0] == "run":
            arguments.append("--in-process")
        main(arguments)
        command.check(capsys.readouterr().out)
    return len(commands)


def damage_latest(folder: Path) -> None:
    (victim,) = folder.glob("state/shares/checkpoints/2/table-orders-s-*.parquet")
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)


def test_the_page_runs_as_it_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    commands = files = 0
    for kind, block, remark in STEP.findall(PAGE.read_text(encoding="utf-8")):
        if remark:
            damage_latest(tmp_path)
        elif kind == "console":
            commands += run_console(block, capsys)
        else:
            heading, _, content = block.partition("\n")
            Path(heading.removeprefix("# ")).write_text(content)
            files += 1
    assert (commands, files) == (15, 3)
    rows = Counter(row["id"] for path in Path("out").glob("part-*") for row in pq.read_table(path).to_pylist())
    # Epoch 1 read three rows; those of epoch 2 were read again after the repair, as the page says.
    assert rows == {1: 1, 2: 1, 3: 1, 4: 2, 5: 2}


def test_a_pattern_does_not_match_what_differs():
    pattern = shown_pattern(["epoch 1: ... files, whole", "...", "end"])
    assert re.fullmatch(pattern, "epoch 1:   7 files, whole\nmore\nand more\nend\n")
    for wrong in (
        "epoch 2: 7 files, whole\nend\n",
        "epoch 1: 7 files, whole\n",
        "epoch 1: 7 files, whole\nend\nmore\n",
    ):
        assert re.fullmatch(pattern, wrong) is None


@pytest.mark.parametrize("option", ["--quiet-for", "--orphans-older-than", "--latest", "--epoch"])
def test_options_of_checkpoints_that_the_page_names_exist(option, capsys):
    action = "repair" if option in ("--quiet-for", "--orphans-older-than") else "verify"
    with pytest.raises(SystemExit):
        main(["checkpoints", action, "--help"])
    assert option in capsys.readouterr().out
    assert option in PAGE.read_text(encoding="utf-8")
