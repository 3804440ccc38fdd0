"""`arroyo graph`: what it draws, and what it says where it cannot."""

import builtins
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from arroyo_devtools.commands.graph import DRAWINGS
from arroyo_devtools.drawing.svg import render_svg
from arroyo_testing import run_in_process

from arroyo_core.cli.main import main
from arroyo_core.pipeline import plan_file
from arroyo_core.plugin import installed_plugins
from tests.example_files import EXAMPLES, planned_anywhere

PIPELINES = planned_anywhere()
SVG = "{http://www.w3.org/2000/svg}"
BRANCHING = """\
name: branching
parallelism: 2
checkpoint: {url: STATE}
nodes:
  - {id: bids, operator: nexmark.source, config: {events: 5000}}
  - {id: in_time, operator: std.watermark, inputs: [bids], config: {max_lateness: 1s}}
  - id: counts
    operator: std.tumbling_window
    inputs: [in_time]
    config: {size: 1s, keys: [auction], late: side_output, aggregates: [{function: count, as: n}]}
  - {id: late, operator: std.blackhole, inputs: [counts.late]}
  - {id: hot, operator: std.filter, inputs: [counts], config: {predicate: "n > 2 AND n < 10000"}}
  - {id: both, operator: std.union, inputs: [hot, counts]}
  - {id: out, operator: std.blackhole, parallelism: 1, inputs: [both]}
"""


@pytest.fixture
def pipeline(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(BRANCHING.replace("STATE", str(tmp_path / "state")))
    return path


@pytest.fixture
def ran(pipeline):
    run_in_process(pipeline)
    return pipeline


def drawn(pipeline, *arguments):
    path = pipeline.with_name("graph.svg")
    assert main(["graph", str(pipeline), "-o", str(path), *arguments]) == 0
    return ET.fromstring(path.read_text(encoding="utf-8"))


def texts(svg):
    return [element.text for element in svg.iter(f"{SVG}text")]


def hints(svg):
    return [element.text for element in svg.iter(f"{SVG}title")]


def test_every_node_chain_and_exchange_is_drawn(pipeline):
    shown = texts(drawn(pipeline))
    for node in ("bids", "in_time", "counts", "late", "hot", "both", "out"):
        assert node in shown
    assert "nexmark.source \N{MULTIPLICATION SIGN}2" in shown
    assert "std.blackhole \N{MULTIPLICATION SIGN}1" in shown
    assert "chain 0, wave 0" in shown
    assert "shuffle by auction" in shown
    assert ".late, forward" in shown
    assert "input 1: forward" in shown
    assert shown.count("shuffle by auction") == 2


def test_hovering_shows_schemas(pipeline):
    found = hints(drawn(pipeline))
    edge = next(hint for hint in found if hint.startswith("counts to hot: forward"))
    assert "  n: int64" in edge
    assert any(hint.startswith("counts.late to late: forward") and "  bidder: int64" in hint for hint in found)
    assert any("predicate: n > 2 AND n < 10000" in hint for hint in found)


@pytest.mark.parametrize("example", PIPELINES, ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_the_text_of_every_example_fits_its_box(example, monkeypatch):
    monkeypatch.chdir(EXAMPLES.parent)
    planned = plan_file(example, plugins=installed_plugins(), environment={})
    svg = ET.fromstring(render_svg(planned))
    sizes = dict(re.findall(r"^\.([a-z-]+) \{ font-size: (\d+)px", svg.find(f"{SVG}style").text, re.MULTILINE))
    boxes = 0
    for group in svg.iter(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        if rect is None or rect.get("class") not in ("node", "source", "sink"):
            continue
        boxes += 1
        right = float(rect.get("x")) + float(rect.get("width"))
        bottom = float(rect.get("y")) + float(rect.get("height"))
        for text in group.findall(f"{SVG}text"):
            # No monospaced font that is named in the style is wider than this.
            width = len(text.text) * int(sizes[text.get("class")]) * 0.605
            assert float(text.get("x")) + width < right
            assert float(text.get("y")) < bottom
    assert boxes == len(planned.plan.nodes)


def test_a_checkpoint_adds_what_its_epoch_came_to(ran, tmp_path):
    shown = texts(drawn(ran, "--checkpoint", str(tmp_path / "state")))
    heading = next(text for text in shown if text.startswith("epoch 1 of job branching, 4,600 rows in "))
    assert re.search(r", state \d", heading)
    assert "4,600 rows out" in shown
    assert any(re.fullmatch(r"4,600 rows in, [\d,]+ out", text) for text in shown)
    assert any(re.fullmatch(r"state [\d.]+ KiB, busy \d+%", text) for text in shown)


def test_the_slowest_node_stands_out(ran, tmp_path):
    svg = drawn(ran, "--checkpoint", str(tmp_path / "state"))
    assert len([rect for rect in svg.iter(f"{SVG}rect") if "slowest" in rect.get("class", "").split()]) == 1


def test_a_checkpoint_without_its_log_still_tells_its_state(ran, tmp_path, capsys):
    for log in tmp_path.rglob("events-*.jsonl"):
        log.unlink()
    assert main(["graph", str(ran), "--checkpoint", str(tmp_path / "state")]) == 0
    shown = capsys.readouterr().out
    assert "epoch 1 of job branching, no log of its rows and times is left, state" in shown
    assert "busy" not in shown


def test_state_of_nodes_that_are_gone_is_named(ran, tmp_path, capsys):
    ran.write_text(ran.read_text().replace("id: bids", "id: offers").replace("[bids]", "[offers]"))
    assert main(["graph", str(ran), "--checkpoint", str(tmp_path / "state")]) == 0
    assert "does not have them any more: bids" in capsys.readouterr().err


def test_a_stopped_job_is_drawn_with_the_last_epoch_that_had_rows(pipeline, tmp_path, capsys):
    state = tmp_path / "state"
    pipeline.write_text(pipeline.read_text().replace(f"{{url: {state}}}", f"{{url: {state}, rows: 2000}}"))
    run_in_process(pipeline)
    logs = sorted(tmp_path.rglob("events-*.jsonl"), key=lambda path: int(path.parent.name))
    last = int(logs[-1].parent.name)
    assert last > 1
    # As a stop leaves it: nothing was read any more.
    logs[-1].write_text(re.sub(r'"source_rows": \d+', '"source_rows": 0', logs[-1].read_text()))
    assert main(["graph", str(pipeline), "--checkpoint", str(state)]) == 0
    assert f"epoch {last - 1} of job branching, " in capsys.readouterr().out
    assert main(["graph", str(pipeline), "--checkpoint", f"{state}#branching@{last}"]) == 0
    assert f"epoch {last} of job branching, 0 rows in" in capsys.readouterr().out


def test_without_a_file_the_graph_is_text(pipeline, capsys):
    assert main(["graph", str(pipeline)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("branching: 7 nodes, ")
    assert "\n  counts.late --> forward -->\n  | late  std.blackhole\n" in shown
    assert "\n  in_time ==> shuffle by auction ==>\n  | counts  std.tumbling_window\n" in shown


def test_mermaid_has_the_figures_too(ran, tmp_path):
    path = tmp_path / "graph.mmd"
    assert main(["graph", str(ran), "-o", str(path), "--checkpoint", str(tmp_path / "state")]) == 0
    text = path.read_text()
    assert text.startswith("flowchart LR")
    assert "nexmark.source" in text
    assert "4,600 rows out" in text
    assert re.search(r"^  style n\d stroke", text, re.MULTILINE)


def test_a_png_is_made_of_the_same(pipeline, tmp_path, capsys):
    path = tmp_path / "graph.png"
    code = main(["graph", str(pipeline), "-o", str(path)])
    if "needs a monospaced font" in capsys.readouterr().err:
        pytest.skip("this machine has no monospaced font")
    assert code == 0
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n")
    width = float(drawn(pipeline).get("width"))
    assert abs(int.from_bytes(data[16:20], "big") - 2 * width) <= 2


def test_a_png_without_the_extra_says_what_to_install(pipeline, tmp_path, monkeypatch, capsys):
    imported = builtins.__import__

    def refuse(name, *arguments, **named):
        if name == "resvg_py":
            raise ImportError(name)
        return imported(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert main(["graph", str(pipeline), "-o", str(tmp_path / "graph.png")]) == 2
    assert "pip install 'arroyo-devtools[png]'" in capsys.readouterr().err
    assert not (tmp_path / "graph.png").exists()


def test_a_png_without_any_font_is_refused(pipeline, tmp_path, monkeypatch, capsys):
    import resvg_py

    drawing = resvg_py.svg_to_bytes
    monkeypatch.setattr(resvg_py, "svg_to_bytes", lambda **options: drawing(**options, skip_system_fonts=True))
    assert main(["graph", str(pipeline), "-o", str(tmp_path / "graph.png")]) == 2
    assert "needs a monospaced font" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["graph", "graph.pdf"])
def test_an_unknown_ending_says_which_there_are(pipeline, tmp_path, capsys, name):
    assert main(["graph", str(pipeline), "-o", str(tmp_path / name)]) == 2
    assert f"it may end in {', '.join(DRAWINGS)}" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_named(pipeline, tmp_path, capsys):
    path = tmp_path / "none" / "graph.svg"
    assert main(["graph", str(pipeline), "-o", str(path)]) == 2
    assert f"cannot write {path}: No such file" in capsys.readouterr().err


def test_a_job_without_checkpoints_is_named(pipeline, tmp_path, capsys):
    assert main(["graph", str(pipeline), "--checkpoint", str(tmp_path / "state")]) == 2
    assert "job 'branching' has no checkpoint" in capsys.readouterr().err


def test_values_of_the_environment_are_not_drawn(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_WORD", "abracadabra")
    path = tmp_path / "p.yaml"
    path.write_text(
        "name: hidden\nnodes:\n"
        "  - {id: in, operator: impulse.source, config: {count: 3}}\n"
        "  - {id: mark, operator: std.project, inputs: [in], config: {expressions: {word: \"'${SECRET_WORD}'\"}}}\n"
        "  - {id: out, operator: std.blackhole, inputs: [mark]}\n"
    )
    drawn(path)
    text = path.with_name("graph.svg").read_text()
    assert "abracadabra" not in text
    assert "${SECRET_WORD}" in text


def test_a_long_name_is_cut(tmp_path):
    name = "a" * 60
    path = tmp_path / "p.yaml"
    path.write_text(
        f"name: long\nnodes:\n  - {{id: {name}, operator: impulse.source, config: {{count: 3}}}}\n"
        f"  - {{id: out, operator: std.blackhole, inputs: [{name}]}}\n"
    )
    svg = drawn(path)
    assert f"{'a' * 43}…" in texts(svg)
    assert any(name in hint for hint in hints(svg))


def test_the_picture_in_the_documents_is_of_today(tmp_path, monkeypatch):
    """If not: `arroyo graph examples/union_of_streams.yaml -o docs/images/union_of_streams.svg`."""
    monkeypatch.chdir(EXAMPLES.parent)
    path = tmp_path / "graph.svg"
    assert main(["graph", "examples/union_of_streams.yaml", "-o", str(path)]) == 0
    drawn_now, kept = (
        # Hints name versions.
        re.sub(r"<title>.*?</title>", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        for file in (path, Path("docs/images/union_of_streams.svg"))
    )
    assert drawn_now == kept
