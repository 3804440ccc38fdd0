from __future__ import annotations

import subprocess
import sys

import pytest

from arroyo_core.plugin import discover

OPERATORS = [
    "std.asof_join",
    "std.assign_window",
    "std.async_udf",
    "std.blackhole",
    "std.deduplicate",
    "std.filter",
    "std.interval_join",
    "std.join",
    "std.key_by",
    "std.lookup_join",
    "std.map_batches",
    "std.neighbors",
    "std.process",
    "std.project",
    "std.session_window",
    "std.sliding_window",
    "std.sql",
    "std.stdout",
    "std.top_n",
    "std.tumbling_window",
    "std.union",
    "std.unnest",
    "std.updating_aggregate",
    "std.upsert",
    "std.watermark",
    "std.window_function",
    "std.window_join",
]


def test_every_operator_is_registered_by_the_installed_distribution():
    report = next(each for each in discover().reports if each.name == "std")
    assert report.error is None
    assert list(report.operators) == OPERATORS
    assert report.origin.distribution == "arroyo-std"


def test_importing_the_plugin_imports_no_client_library():
    code = (
        "import sys; import arroyo_std.plugin; "
        "print([name for name in ('datafusion', 'pyarrow.dataset', 'pyspark') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("operator", ["std.stdout", "std.blackhole"])
def test_sinks_are_ends_of_a_pipeline(make, operator):
    assert make(operator).is_sink()


def test_a_blackhole_emits_nothing(make, run, events, events_schema):
    subtask = run(make("std.blackhole"), [events_schema]).feed(events)
    subtask.checkpoint()
    assert subtask.events == []
