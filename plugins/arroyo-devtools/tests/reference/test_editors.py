"""What docs/editors.md shows works."""

import json
import re
from pathlib import Path

from arroyo_core.cli.main import main
from arroyo_core.pipeline.planner import plan_text

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "editors.md").read_text(encoding="utf-8")


def block(language):
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return found


def test_the_command_writes_the_file_that_the_settings_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (command,) = re.findall(r"^    arroyo (schema .*)$", PAGE, re.MULTILINE)
    assert main(command.split()) == 0
    (path,) = json.loads(block("json"))["yaml.schemas"]
    assert (tmp_path / path).exists()
    assert f'"{path}"' in block("lua")


def test_the_pipeline_names_the_schema_and_is_valid(plugins, problems):
    pipeline = block("yaml")
    assert pipeline.startswith("# yaml-language-server: $schema=./arroyo.schema.json\n")
    assert problems(pipeline) == []
    plan_text(pipeline, plugins=plugins, environment={})
