"""Growth is told from what only goes up and down; the plot is a picture."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from .plot import draw
from .quarters import Epoch, Measure, compare, measures, table, warm_up_s
from .samples import Sample


def made(values, *, is_count=False, unit="MiB", is_judged=True):
    return Measure(
        name="some",
        unit=unit,
        times_s=[float(time_s) for time_s in range(len(values))],
        values=values,
        is_count=is_count,
        is_judged=is_judged,
    )


def change_of(values, **kind):
    return compare(made(values, **kind), 0.0, len(values) - 1.0)


@pytest.mark.parametrize(
    ("values", "kind", "is_flat"),
    [
        ([100.0] * 100, {}, True),
        ([100.0 + 7 * (number % 3) for number in range(100)], {}, True),
        ([100.0 + number for number in range(100)], {}, False),
        ([200.0 - number for number in range(100)], {}, True),
        ([100.0] * 75 + [111.0] * 25, {}, False),
        ([2.0] * 50 + [4.0] * 50, {"is_count": True}, True),
        ([2.0] * 50 + [9.0] * 50, {"is_count": True}, False),
        ([10.0] * 50 + [12.0] * 50, {"unit": "ms"}, True),
        ([10.0] * 50 + [14.0] * 50, {"unit": "ms"}, False),
        ([0.0] * 50 + [9.0] * 50, {"is_count": True}, False),
    ],
)
def test_growth_is_noticed_and_noise_is_not(values, kind, is_flat):
    assert change_of(values, **kind).is_flat is is_flat


def test_the_quarters_begin_after_the_warm_up():
    change = compare(made([9.0] * 20 + [1.0] * 80), 20.0, 99.0)
    assert (change.first, change.last) == (1.0, 1.0)
    assert warm_up_s(60.0) == 6.0
    assert warm_up_s(36_000.0) == 300.0


@pytest.mark.parametrize(("leak", "is_flat"), [(0, True), (2, False)])
def test_what_is_collected_now_and_then_must_come_back_to_where_it_was(leak, is_flat):
    times = [float(number) for number in range(100)]
    saw = Measure(
        name="shuffles",
        unit="",
        times_s=times,
        values=[leak * time + 10 * (time % 9) for time in times],
        falls_back=True,
    )
    assert compare(saw, 0.0, 100.0).is_flat is is_flat


@pytest.mark.parametrize(("has_peaks", "is_flat"), [(False, False), (True, True)])
def test_of_what_fills_and_empties_the_peaks_count(has_peaks, is_flat):
    """Half of the time full at the end, and seldom at the beginning."""
    values = [400.0 if number % 9 == 0 or number > 70 else 300.0 for number in range(100)]
    assert compare(replace(made(values), has_peaks=has_peaks), 0.0, 99.0).is_flat is is_flat


def sample(number: int) -> Sample:
    return Sample(
        time_s=float(number),
        pss_bytes={"driver": 2**20, "JVM": 2**20 * (10 + number)},
        descriptors={"driver": 7, "JVM": 70},
        processes={"driver": 1, "JVM": 1},
        worker_cpu_s={},
        cpu_s=number * 2.0,
        files={"state": 40, "temporary": 10 * number},
        state_bytes=2**20,
        epochs=number * 5,
    )


def test_what_grows_is_named_in_the_table_and_in_the_plot():
    samples = [sample(number) for number in range(40)]
    epochs = [
        Epoch(time_s=number / 5, number=number, duration_s=0.15, commit_s=0.01, source_rows=10) for number in range(200)
    ]
    changes = [compare(measure, 4.0, 40.0) for measure in measures(samples, epochs)]
    assert [change.measure.name for change in changes if not change.is_flat] == ["memory: JVM", "files: temporary"]
    by_name = {change.measure.name: change for change in changes}
    assert by_name["from epoch to epoch"].first == pytest.approx(200)
    assert by_name["processor time per epoch"].first == pytest.approx(400)
    assert "| files: temporary | 85.0 | 350.0 | +311.8% | GROWS |" in table(changes)
    picture = ElementTree.fromstring(draw(changes, start_s=4.0, end_s=40.0, title="a <run>"))
    assert len(picture.findall(".//{*}polyline")) == len(changes)
