"""The pipeline of the README runs as it stands."""

import json
import re
from pathlib import Path

from arroyo_testing import run_in_process

README = Path(__file__).parents[2] / "README.md"


def test_the_pipeline_of_the_readme_finds_busy_auctions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (script,) = re.findall(r"```sql\n-- (\S+)\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    (tmp_path / script[0]).write_text(script[1])
    run_in_process(tmp_path / script[0])
    rows = [
        json.loads(line) for file in Path("out/busy_auctions").glob("*.jsonl") for line in file.read_text().splitlines()
    ]
    assert rows
    assert all(row["bids"] > 100 and set(row) == {"auction", "bids", "began"} for row in rows)


def test_the_yaml_of_the_readme_counts_all_bids(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (text,) = re.findall(r"```yaml\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    (tmp_path / "busy.yaml").write_text(text)
    run_in_process(tmp_path / "busy.yaml")
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    final = {row["channel"]: row["bids"] for row in rows if not row["_updating_meta"]["is_retract"]}
    assert sum(final.values()) == 920
