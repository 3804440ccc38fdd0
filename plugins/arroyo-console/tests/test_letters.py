"""Dead letters of a job that ran: listed, shown, and replayed through a fixed text."""

from __future__ import annotations

import pytest
from arroyo_console.values import Language, State

from .support.serving import console_in, started, wait_for_state

pytestmark = pytest.mark.once


def _shares(folder, share):
    return f"""name: shares
checkpoint: {{rows: 3}}
nodes:
  - id: orders
    operator: filesystem.source
    config: {{path: {folder}/orders.csv, format: csv, schema: {{id: int64, people: int64}}}}
  - id: shared
    operator: std.project
    inputs: [orders]
    config: {{keep: [id], expressions: {{share: "{share}"}}, on_error: dead_letter}}
  - {{id: out, operator: filesystem.sink, inputs: [shared], config: {{path: {folder}/out}}}}
  - {{id: dead, operator: filesystem.sink, inputs: [shared.errors], config: {{path: {folder}/dead}}}}
"""


def test_rows_that_failed_are_shown_and_replayed_once(tmp_path):
    (tmp_path / "orders.csv").write_text("id,people\n1,2\n2,0\n3,4\n4,0\n5,6\n")
    with started(console_in(tmp_path / "data")) as console:
        made = console.create_pipeline(_shares(tmp_path, "12 / people"), Language.YAML)
        wait_for_state(console, made.job.id, State.FINISHED)
        (summary,) = console.letters(made.job.id)
        assert (summary.node, summary.letters, summary.open, summary.replayed) == ("shared", 2, 2, 0)
        assert "divide by zero" in summary.newest_error
        letters = console.letters_of(made.job.id, node="shared")
        assert [letter.row for letter in letters] == [{"id": 2, "people": 0}, {"id": 4, "people": 0}]
        assert not console.letters_of(made.job.id, node="out")
        console.change_pipeline(made.id, text=_shares(tmp_path, "12 / greatest(people, 1)"))
        would = console.replay_letters(made.job.id)
        assert (would.is_dry_run, would.error) == (True, "")
        assert "would replay 2 letters of 'shared'" in would.lines[0]
        assert console.letters(made.job.id)[0].open == 2
        done = console.replay_letters(made.job.id, is_dry_run=False)
        assert "replayed 2 letters of 'shared'" in done.lines[0]
        assert console.letters(made.job.id)[0].replayed == 2
        assert "nothing is replayed" in console.replay_letters(made.job.id, is_dry_run=False).lines[0]
