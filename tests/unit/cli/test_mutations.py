"""Mutants of pipelines, planned in untrusted mode: `python -m tests.mutations` makes as many as one likes."""

import pytest

from arroyo_core.api.limits import UNTRUSTED_MEMORY
from tests.mutations import runs
from tests.mutations.mutants import VALUES, corpus, mutant
from tests.mutations.runs import Done, Failure, run
from tests.mutations.worker import check

COUNT = 300


def test_mutants_of_pipelines_do_no_harm():
    events = list(run(7, 0, COUNT))
    assert [event for event in events if isinstance(event, Failure)] == []
    assert isinstance(events[-1], Done)
    assert events[-1].count == COUNT
    assert 0 < events[-1].memory_bytes < UNTRUSTED_MEMORY.value


def test_a_worker_that_dies_is_a_failure_of_its_mutant_and_the_rest_is_planned(monkeypatch):
    workers = []

    class Watched(runs._Worker):
        def __init__(self, *args):
            super().__init__(*args)
            workers.append(self)

    monkeypatch.setattr(runs, "_Worker", Watched)
    events = run(3, 0, runs.PER_WORKER, processes=1)
    assert any(isinstance(event, Done) and event.count > 0 for event in events)
    workers[0].kill()
    failure = next(event for event in events if isinstance(event, Failure))
    assert "the worker ended with -9" in failure.problem
    assert any(isinstance(event, Done) and event.count > failure.number + 1 for event in events)
    assert workers[1].first == failure.number + 1
    events.close()
    assert workers[1].is_over()


def test_a_mutant_is_made_again_from_its_seed_and_number():
    files, values = corpus(), repr(VALUES)
    made = [mutant(files, 1, number) for number in range(200)]
    assert [mutant(files, 1, number) for number in range(200)] == made
    assert len({data for _, data in made}) > 150
    # Else a mutant would depend on those before it.
    assert repr(VALUES) == values


def test_mutants_are_of_both_kinds():
    files = dict(corpus())
    made = [mutant(list(files.items()), 1, number) for number in range(100)]
    assert any(data != files[path] for path, data in made)
    assert any(b"!include" in data or b"${HOME}" in data for _, data in made)


@pytest.mark.parametrize("problem", ["a bug", "a fault of an operator"])
def test_harm_is_seen(problem, monkeypatch):
    def fail(*args, **kwargs):
        raise ZeroDivisionError(problem)

    monkeypatch.setattr("tests.mutations.worker.plan_text", fail)
    (found,) = check("examples/x.yaml", b"name: x")
    assert problem in found
    assert "Traceback" in found
