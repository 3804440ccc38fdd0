"""`--set` on the commands that read a pipeline, and the pipelines that the documents show."""

import json
import re
import sys
import types
from pathlib import Path

import pytest
from arroyo_testing import run_in_process

from arroyo_core import Pipeline
from arroyo_core.api import UnboundedState
from arroyo_core.cli.main import main
from arroyo_core.cli.options import given_parameters
from arroyo_core.errors import InvalidPipelineError, StateError

DOCS = Path(__file__).parents[3] / "docs"
PIPELINES = (DOCS / "pipelines.md").read_text()


def yaml_blocks(heading):
    section = PIPELINES.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```yaml\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


@pytest.fixture
def documented(tmp_path):
    (text,) = yaml_blocks("Parameters")
    path = tmp_path / "hot_items.yaml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("command", ["validate", "plan", "lint"])
def test_a_value_can_be_given_to_every_command(documented, command, capsys):
    assert main([command, documented, "--set", "stage=dev", "--set", "price=250"]) == 0
    assert main([command, documented]) == 2
    assert f"{documented}:3:3: parameter 'stage' (dev or prod) has no default" in capsys.readouterr().err


def test_a_plan_shows_the_values(documented, capsys):
    assert main(["plan", documented, "--set", "stage=dev", "--set", "price=1", "--set", "price=250"]) == 0
    shown = capsys.readouterr().out
    assert "hot_items_dev" in shown
    assert "price > 250" in shown


def test_a_plan_in_json_differs_by_the_value_alone(documented, capsys):
    texts = []
    for price in (100, 250):
        assert main(["plan", documented, "--format", "json", "--set", "stage=dev", "--set", f"price={price}"]) == 0
        texts.append(json.dumps(json.loads(capsys.readouterr().out)))
    assert texts[0] != texts[1]
    assert texts[0].replace("price > 100", "price > 250") == texts[1]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("prise=1", "did you mean price?"),
        ("price=much", "the value given for parameter 'price' must be a whole number, not the string 'much'"),
        ("wait=5", "did you mean 5s?"),
    ],
)
def test_a_wrong_value_is_a_mistake(documented, setting, message, capsys):
    assert main(["validate", documented, "--set", "stage=dev", "--set", setting]) == 2
    assert message in capsys.readouterr().err


def test_run_gives_the_values_to_the_pipeline(documented, monkeypatch):
    found = []
    run = types.SimpleNamespace(run=lambda args: found.append(given_parameters(args)) or 0)
    monkeypatch.setitem(sys.modules, "arroyo_core.cli.run", run)
    assert main(["run", documented, "--set", "stage=dev", "--set", "price=a=b"]) == 0
    assert found == [{"stage": "dev", "price": "a=b"}]


def test_python_gives_values_too(documented):
    assert Pipeline.from_yaml(documented, parameters={"stage": "dev", "price": 7}).plan.job_id == "hot_items_dev"
    with pytest.raises(InvalidPipelineError, match="needs a value: --set stage=VALUE"):
        Pipeline.from_yaml(documented)


@pytest.mark.parametrize("setting", ["price", "=1", ""])
def test_what_is_no_setting_is_refused(documented, setting, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["validate", documented, "--set", setting])
    assert ended.value.code == 2
    assert "is not of the form NAME=VALUE" in capsys.readouterr().err


def test_the_documented_includes_make_a_pipeline(tmp_path, capsys):
    whole, part = yaml_blocks("Includes")
    (settings,) = re.findall(r"`settings.yaml` is `(.*?)`", PIPELINES)
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "bids.yaml").write_text(part)
    (tmp_path / "settings.yaml").write_text(settings)
    path = tmp_path / "p.yaml"
    path.write_text(whole)
    assert main(["validate", str(path)]) == 0
    assert "valid (4 nodes" in capsys.readouterr().out
    (tmp_path / "settings.yaml").write_text("predicate: prise > 100\n")
    assert main(["validate", str(path)]) == 2
    assert f"{tmp_path}/settings.yaml:1:12: " in capsys.readouterr().err


def test_documented_pipelines_are_in_the_canonical_layout(tmp_path):
    for number, text in enumerate([*yaml_blocks("Parameters"), *yaml_blocks("Includes")]):
        path = tmp_path / f"{number}.yaml"
        path.write_text(text)
        assert main(["fmt", "--check", str(path)]) == 0, text


def test_the_method_in_the_document_of_lint_is_an_answer():
    (block,) = re.findall(r"^```python\n(.*?)^```", (DOCS / "lint.md").read_text(), re.MULTILINE | re.DOTALL)
    names = {"UnboundedState": UnboundedState}
    exec(compile(block, "lint.py", "exec"), names)
    assert isinstance(names["unbounded_state"](None, []), UnboundedState)


def test_a_checkpoint_notices_another_value_as_it_notices_another_text(tmp_path, capsys):
    text = """\
name: totals
parameters: {key: {default: bidder}}
checkpoint: {url: STATE}
nodes:
  - {id: bids, operator: nexmark.source, config: {events: 500}}
  - id: counts
    operator: std.updating_aggregate
    inputs: [bids]
    config: {keys: ["${key}"], aggregates: [{function: count}]}
  - {id: out, operator: std.blackhole, inputs: [counts]}
""".replace("STATE", str(tmp_path / "state"))
    path, other = tmp_path / "p.yaml", tmp_path / "other.yaml"
    path.write_text(text)
    other.write_text(text.replace("default: bidder", "default: channel"))
    run_in_process(path, parameters={"key": "bidder"})
    against = ["--against", str(tmp_path / "state")]
    assert main(["plan", str(path), *against]) == 0
    capsys.readouterr()
    assert main(["plan", str(path), "--set", "key=channel", *against]) == 2
    noticed = capsys.readouterr().out
    assert "incompatible" in noticed
    assert main(["plan", str(other), *against]) == 2
    assert capsys.readouterr().out == noticed
    with pytest.raises(StateError):
        run_in_process(path, parameters={"key": "channel"})
