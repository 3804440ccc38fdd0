"""Whatever way a job took through kills and starts: the epochs that its last one descends from are exact."""

import json
from collections import Counter
from contextlib import closing
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arroyo_core.runtime.events import Committed, EpochAccepted, Published
from arroyo_core.runtime.start import StartError, StartOptions

KINDS = [EpochAccepted, Published, Committed]

#: How to start, where to be killed, and after how many epochs; an epoch to go back to is counted from the newest.
STEPS = st.lists(
    st.tuples(
        st.one_of(st.just("latest"), st.just("fresh"), st.integers(0, 4)), st.sampled_from(KINDS), st.integers(0, 2)
    ),
    max_size=6,
)

#: So that every epoch can still be looked at in the end.
KEPT = {"checkpoint": {"interval": "1h", "rows": 4, "keep": 1000}}


def options_of(way, epochs):
    if way == "fresh":
        return StartOptions(is_fresh=True, is_forced=True)
    if way == "latest" or not epochs:
        return StartOptions()
    return StartOptions(from_epoch=epochs[-1 - way % len(epochs)])


def kill(runs, kind, epochs, options, name):
    """Run on until `kind` of an epoch, or to the end if that comes first."""
    with closing(runs.job(options, name=name, **KEPT)) as job:
        job.begin()
        while not job.is_ended:
            event = job.step()
            if isinstance(event, kind):
                if epochs == 0:
                    return
                epochs -= 1


def is_given_up(runs, epoch, published, name):
    """Only the latest epoch can still be committed."""
    return epoch is not None and epoch != published[-1] and not runs.backend(name).is_committed(epoch)


def lineage(runs, name):
    epoch = runs.backend(name).list_epochs()[-1]
    while epoch:
        yield epoch
        epoch = runs.checkpoint(epoch, name).parent_epoch


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_the_epochs_that_lead_to_the_last_one_hold_every_row_once(runs, steps):
    name = f"job-{uuid4().hex}"
    before = len(runs.lab.trace.committed)
    for way, kind, epochs in steps:
        published = runs.backend(name).list_epochs()
        options = options_of(way, published)
        if is_given_up(runs, options.from_epoch, published, name):
            with pytest.raises(StartError, match="was never committed"):
                kill(runs, kind, epochs, options, name)
            continue
        kill(runs, kind, epochs, options, name)
        assert runs.backend(name).list_epochs()[: len(published)] == published
    runs.run(name=name, **KEPT)

    committed = {(epoch, json.dumps(rows)): rows for epoch, rows in runs.lab.trace.committed[before:]}
    rows_of = {}
    for (epoch, _), rows in committed.items():
        rows_of.setdefault(epoch, []).extend(rows)
    descended = [row for epoch in lineage(runs, name) for row in rows_of[epoch]]
    totals = Counter((row["key"], row["n"]) for row in descended) - Counter((n % 5, n) for n in runs.numbers)
    assert totals == {(key, sum(n for n in runs.numbers if n % 5 == key)): 1 for key in range(5)}
    assert len(descended) == len(runs.numbers) + 5
