import io
import sys
from pathlib import Path

import pytest

from arroyo_core.cli.main import main
from arroyo_core.pipeline import plan_pipeline
from arroyo_core.plugin import installed_plugins

ROOT = Path(__file__).parents[3]
MESSY = """\
nodes:
- {id: bids,   operator: nexmark.source, config: {events: 1000}}
- id: big   # only these
  inputs: bids
  operator: std.filter
  config: { predicate: 'price > 100' }
- {id: out, operator: std.blackhole, inputs: [ big ]}
name: good
"""
TIDY = """\
name: good
nodes:
  - {id: bids, operator: nexmark.source, config: {events: 1000}}
  - id: big  # only these
    operator: std.filter
    inputs: bids
    config: {predicate: "price > 100"}
  - {id: out, operator: std.blackhole, inputs: [big]}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(MESSY)
    return path


def test_a_file_is_written_in_place_and_a_second_time_left_alone(file, capsys):
    file.chmod(0o640)
    assert main(["fmt", str(file)]) == 0
    assert file.read_text() == TIDY
    assert file.stat().st_mode & 0o777 == 0o640
    assert capsys.readouterr().err == f"changed {file}\n1 file: 1 changed\n"
    before = file.stat().st_mtime_ns
    assert main(["fmt", str(file)]) == 0
    assert file.stat().st_mtime_ns == before
    assert capsys.readouterr().err == "1 file: 0 changed\n"
    assert [path.name for path in file.parent.iterdir()] == ["p.yaml"]


def test_the_plan_stays_the_same(file):
    plugins = installed_plugins()
    before = plan_pipeline(file, plugins=plugins, environment={})
    main(["fmt", str(file)])
    assert file.read_text() == TIDY
    after = plan_pipeline(file, plugins=plugins, environment={})
    assert after == before


def test_a_file_of_another_language_is_left_as_it_is(tmp_path, capsys):
    script = tmp_path / "q.sql"
    script.write_text("SELECT 'a\n  b' AS x\nFROM t;\n")
    assert main(["fmt", str(script)]) == 2
    assert script.read_text() == "SELECT 'a\n  b' AS x\nFROM t;\n"
    assert "only YAML has a canonical layout" in capsys.readouterr().err


def test_check_tells_and_writes_nothing(file, capsys):
    assert main(["fmt", "--check", str(file)]) == 1
    assert file.read_text() == MESSY
    assert capsys.readouterr().err == f"would change {file}\n1 file: 1 would change\n"
    file.write_text(TIDY)
    assert main(["fmt", "--check", str(file)]) == 0


def test_diff_shows_and_writes_nothing(file, capsys):
    file.write_text(TIDY.replace("[big]", "[ big ]").rstrip("\n"))
    assert main(["fmt", "--diff", str(file)]) == 1
    shown = capsys.readouterr().out
    assert "-  - {id: out, operator: std.blackhole, inputs: [ big ]}\n\\ No newline at end of file\n" in shown
    assert "+  - {id: out, operator: std.blackhole, inputs: [big]}\n" in shown
    assert "[ big ]" in file.read_text()


def test_a_file_that_is_no_yaml_is_shown_and_the_others_are_formatted(file, tmp_path, capsys):
    bad = tmp_path / "bad.yaml"
    bad.write_text("a: [1\n")
    assert main(["fmt", str(bad), str(tmp_path / "none.yaml"), str(file)]) == 2
    assert bad.read_text() == "a: [1\n"
    assert file.read_text() == TIDY
    shown = capsys.readouterr().err
    assert f"{bad}:2:1: YAML syntax" in shown
    assert "none.yaml: No such file or directory" in shown
    assert shown.endswith("3 files: 1 changed, 2 not readable\n")


def test_line_breaks_and_a_byte_order_mark_are_layout(file):
    file.write_bytes(b"\xef\xbb\xbf" + TIDY.replace("\n", "\r\n").encode())
    assert main(["fmt", "--check", str(file)]) == 1
    assert main(["fmt", str(file)]) == 0
    assert file.read_bytes() == TIDY.encode()


def test_a_link_stays_a_link(file, tmp_path):
    link = tmp_path / "link.yaml"
    link.symlink_to(file)
    assert main(["fmt", str(link)]) == 0
    assert link.is_symlink()
    assert file.read_text() == TIDY


def test_the_examples_are_formatted(capsys):
    examples = sorted(str(path) for path in (ROOT / "examples").rglob("*.yaml") if not path.stem.endswith("_test"))
    assert examples
    assert main(["fmt", "--check", *examples]) == 0, capsys.readouterr().err


def test_stdin_goes_to_stdout(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MESSY.encode())))
    assert main(["fmt", "-"]) == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == (TIDY, "")
