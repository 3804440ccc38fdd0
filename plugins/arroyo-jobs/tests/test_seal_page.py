"""docs/sealed.md, as somebody follows it with a job that has checkpoints already."""

from __future__ import annotations

import shlex

from arroyo_core.cli.main import main
from arroyo_core.state.seals import FILE_VARIABLE, KEY_VARIABLE
from tests.document_pages import ROOT, read_commands, read_steps

PIPELINE = """\
name: orders
checkpoint: {url: ./state, rows: 5}
nodes:
  - {id: rows, operator: impulse.source, config: {count: 10}}
  - {id: out, operator: std.blackhole, inputs: [rows]}
"""


def test_the_commands_of_the_page_seal_a_job_and_run_it(tmp_path, monkeypatch, capsys, own_logging):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    (tmp_path / "orders.yaml").write_text(PIPELINE)
    (tmp_path / "seal.key").write_text("k" * 64)
    steps = read_steps(ROOT / "docs" / "sealed.md")
    run, say, do = (shlex.split(command.line) for step in steps for command in read_commands(step.text))
    assert run[:3] == [f"{FILE_VARIABLE}=/etc/arroyo/seal.key", "arroyo", "run"]
    assert main(["run", "--in-process", *run[3:]]) == 0
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "seal.key"))
    assert main(["run", "--in-process", *run[3:]]) == 4
    assert "`arroyo checkpoints seal` seals the checkpoints of a job that you trust" in capsys.readouterr().err
    assert main(say[1:]) == 1
    assert main(do[1:]) == 0
    assert main(["run", "--in-process", *run[3:]]) == 0
