"""A short form of `make soak-files`: nothing is lost, and the state does not follow the number of files."""

from __future__ import annotations

import pytest

from .files import Load, Outcome, soak_files

LOAD = Load(files=100, duration_s=100.0, min_file_bytes=1000)


def outcome(**changes):
    """One in which nothing grows."""
    flat = [(float(second), 1.0) for second in range(100)]
    names = ("listing_s", "listed_files", "state_rows", "state_bytes", "latency_s")
    return Outcome(LOAD, **{**dict.fromkeys(names, flat), "output_bytes": [1000] * 9, **changes})


def test_what_is_flat_is_no_problem():
    assert outcome().problems() == []
    assert "| rows of state | 1 | 1 |" in outcome().table()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"missing_rows": 1}, "1 rows are missing"),
        ({"repeated_rows": 1}, "1 come twice"),
        ({"left_files": 1}, "1 files are left"),
        ({"behind_s": 31.0}, "31 s late"),
        ({"state_rows": []}, "state_rows: nothing was seen in the second quarter"),
        ({"state_rows": [(float(second), 10.0 * second) for second in range(100)]}, "state_rows: 370.000"),
        ({"listed_files": [(float(second), 10.0 * second) for second in range(100)]}, "listed_files: 370.000"),
        ({"listing_s": [(float(second), second / 10) for second in range(100)]}, "listing_s: 3.700"),
        ({"latency_s": [(float(second), second / 10) for second in range(100)]}, "latency_s: 3.700"),
        ({"state_bytes": [(float(second), 1000.0 * second) for second in range(100)]}, "state_bytes: 37000.000"),
        ({"output_bytes": [10] * 9}, "7 files of 9 are below 1000 bytes"),
    ],
)
def test_what_grows_or_is_lost_is_a_problem(changes, text):
    assert any(text in problem for problem in outcome(**changes).problems()), outcome(**changes).problems()


@pytest.mark.timeout(300)
def test_files_that_keep_coming_are_read_once_and_forgotten(tmp_path):
    load = Load(
        files=240,
        duration_s=12.0,
        rows_per_file=40,
        interval="500ms",
        poll="250ms",
        lateness="1s",
        min_file_bytes=60_000,
        slack_s=5.0,
    )
    outcome = soak_files(load, tmp_path)
    print(outcome.report())
    assert outcome.problems(judges_times=False) == []
    assert outcome.rows == 240 * 40
    assert len(outcome.listing_s) > 5
    # Of 240 files, on a busy machine.
    assert outcome.state_rows
    assert outcome.quarters()["state_rows"][1] < 150
