"""The sources keep the rules of `arroyo_testing.conformance`."""

from __future__ import annotations

from arroyo_testing.conformance import Conformance, SourceCase

nexmark = Conformance(
    "arroyo_nexmark.plugin",
    [
        SourceCase("nexmark.source", {"events": 200, "seed": 7}),
        SourceCase(
            "nexmark.source",
            {"events": 150, "table": "event", "out_of_order_group_size": 4},
            id="nexmark.source of all events",
        ),
        SourceCase("nexmark.source", {"events": 300, "table": "person"}, id="nexmark.source of people"),
    ],
)

impulse = Conformance(
    "arroyo_nexmark.impulse_plugin",
    [
        # Which subtask makes a row follows from the number of subtasks.
        SourceCase("impulse.source", {"count": 100, "event_time_interval": "1s"}, ignore=["subtask_index"]),
    ],
)
