"""The live view of a job as lines, from numbers alone."""

import io
import os
import re
from dataclasses import replace

import pytest
from arroyo_devtools.live.frame import LiveFrame, Moment, bar
from arroyo_devtools.live.screen import Screen
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from arroyo_core.pipeline import plan_text
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.metrics import OperatorMetrics
from arroyo_core.runtime.results import EpochResult

PIPELINE = """\
name: hot
parallelism: 2
nodes:
  - {id: bids, operator: nexmark.source, config: {events: 1000}}
  - {id: in_time, operator: std.watermark, inputs: [bids], config: {max_lateness: 1s}}
  - id: counts
    operator: std.tumbling_window
    inputs: [in_time]
    config: {size: 10s, keys: [auction], aggregates: [{function: count, as: n}]}
  - {id: out, operator: std.blackhole, inputs: [counts]}
"""
NOW_US = 1_700_000_000_000_000


@pytest.fixture(scope="module")
def plan():
    return plan_text(PIPELINE, plugins=installed_plugins(), environment={})


@pytest.fixture(scope="module")
def result(plan):
    subtasks = {
        (name, subtask): OperatorMetrics(
            rows_received=1000, rows_sent=500, busy_ns=(900_000_000 if name == "counts" and subtask else 100_000_000)
        )
        for name in plan.nodes
        for subtask in (0, 1)
    }
    return EpochResult(
        epoch=12,
        duration_s=2.0,
        operators={name: OperatorMetrics(rows_received=2000, rows_sent=1000) for name in plan.nodes},
        subtasks=subtasks,
        source_rows=1000,
        watermark_us=NOW_US - 1_500_000,
        is_final=False,
        checkpoint_bytes=4_300_000,
        state_bytes=9_000_000,
        checkpoint_s=0.05,
        commit_s=0.12,
        operator_state_bytes={"counts": 8_000_000},
        operator_watermarks_us={"counts": NOW_US - 2_500_000},
    )


class Ascii(io.StringIO):
    encoding = "ascii"


def lines_of(plan, columns=120, lines=40, colours=None, **moment):
    """What is written to a terminal of that size, without blanks at the end of lines."""
    out = Ascii()
    console = Console(file=out, force_terminal=True, color_system=colours, markup=False, emoji=False, highlight=False)
    screen = Screen(console, lambda: os.terminal_size((columns, lines)))
    screen.draw(LiveFrame(plan, Moment(now_us=NOW_US, running_s=72.0, **moment)))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def row_of(lines, node):
    return next(line for line in lines if line.startswith(f"{node} ")).split()


def test_a_frame_shows_every_operator_and_the_epoch(plan, result):
    lines = lines_of(plan, last=result, since_last_s=3.2, source_rows=12_000)
    text = "\n".join(lines)
    assert lines[0].startswith("hot   running 72.0 s   epoch 12 took 2.00 s, committed 3.2 s ago")
    for fact in ("500 rows/s", "12,000 rows in", "checkpoint 4.1 MiB in 0.05 s", "commit lag 0.12 s", "state 8.6 MiB"):
        assert fact in text
    assert "watermark lag 1.5 s" in text
    assert "restarts" not in text
    assert row_of(lines, "bids") == ["bids", "nexmark.source", "500", "5%"]
    assert row_of(lines, "counts")[1:] == [
        "std.tumbling_window",
        "1,000",
        "500",
        "2.5",
        "s",
        "7.6",
        "MiB",
        "45%",
        "####",
    ]
    assert row_of(lines, "out")[:3] == ["out", "std.blackhole", "1,000"]


def test_a_frame_shows_where_the_pages_of_spark_are(plan, result):
    address = "http://driver:4040"
    assert f"Spark UI {address}" in "\n".join(lines_of(plan, last=result, spark_ui=address))
    assert f"Spark UI {address}" in "\n".join(lines_of(plan, spark_ui=address))
    assert "Spark UI" not in "\n".join(lines_of(plan, last=result))


def test_the_slowest_operator_is_named_by_its_busiest_subtask(plan, result):
    assert lines_of(plan, last=result)[-1] == "slowest: counts (std.tumbling_window), busy 45% of the epoch"


def test_before_the_first_epoch_the_operators_are_there_already(plan):
    lines = lines_of(plan, resumed_from=7)
    assert lines[0].endswith("the first epoch after epoch 7 is under way")
    assert row_of(lines, "counts") == ["counts", "std.tumbling_window"]
    assert not any("slowest" in line for line in lines)


def test_an_epoch_that_runs_for_long_shows_what_it_has_come_to(plan, result):
    running = replace(result, epoch=13, duration_s=10.0, source_rows=77_000)
    lines = lines_of(plan, columns=200, last=result, since_last_s=10.2, running=running)
    assert "epoch 13 runs for 10 s: 77,000 rows in" in lines[0]
    assert "epoch 12 took 2.00 s" in lines[0]
    assert row_of(lines, "bids") == ["bids", "nexmark.source", "100", "1%"]
    assert "MiB" in row_of(lines, "counts")
    first = lines_of(plan, columns=200, running=running)
    assert first[0].endswith("the first epoch is under way   epoch 13 runs for 10 s: 77,000 rows in")
    assert row_of(first, "bids") == ["bids", "nexmark.source", "100", "1%"]


def test_restarts_and_notices_are_shown(plan, result):
    lines = lines_of(plan, last=result, restarts=3, notice="stopping after this epoch")
    assert "restarts 3" in "\n".join(lines)
    assert lines[-1] == "stopping after this epoch"


def test_a_low_terminal_shows_the_busiest(plan, result):
    lines = lines_of(plan, last=result, lines=9, columns=300)
    assert len(lines) == 8
    assert row_of(lines, "counts")
    assert any(re.fullmatch(r"and \d nodes that are less busy", line) for line in lines)


def test_a_narrow_terminal_leaves_columns_out(plan, result):
    wide = lines_of(plan, last=result, columns=120)
    narrow = lines_of(plan, last=result, columns=50)
    assert "std.tumbling_window" in "\n".join(wide[:-1])
    assert "std.tumbling_window" not in "\n".join(narrow[:-1])
    assert "45%" in "\n".join(narrow[:-1])


def test_colour_is_only_for_terminals_that_want_it(plan, result):
    plain, coloured = (lines_of(plan, last=result, colours=colours) for colours in (None, "standard"))
    assert "\x1b" not in "".join(plain)
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in coloured] == plain
    assert "\x1b[33m" in coloured[-1]


def test_blocks_make_a_finer_bar():
    assert bar(0.33, is_ascii=False) == "███▎"
    assert bar(1.0, is_ascii=False) == "█" * 10
    assert bar(0.33, is_ascii=True) == "###"
    assert bar(0.0, is_ascii=False) == ""


@given(
    columns=st.integers(1, 200), lines=st.integers(1, 40), has_last=st.booleans(), notice=st.sampled_from(["", "stop"])
)
def test_a_frame_never_wraps_nor_scrolls(plan, result, columns, lines, has_last, notice):
    frame = lines_of(plan, columns=columns, lines=lines, last=result if has_last else None, notice=notice)
    assert len(frame) < lines or lines == 1
    assert all(len(line) < max(columns, 2) for line in frame)
