"""The checks of sinks: rows become visible when their epoch is committed, and then exactly once."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from arroyo_core.api import CommitToken, Guarantee, Registry, Watermark
from arroyo_core.errors import ArroyoError
from arroyo_testing.conformance.cases import SinkCase
from arroyo_testing.conformance.faults import GUIDE, ConformanceError, NotApplicable, failure_of
from arroyo_testing.conformance.rows import Outcome, difference, outcome_of
from arroyo_testing.conformance.script import Advance, Feed, Step, cut
from arroyo_testing.conformance.subject import OperatorSubject, empty_folder
from arroyo_testing.parallel import ParallelHarness


class SinkLife:
    """One sink in a folder of its own, epoch by epoch."""

    def __init__(self, case: SinkCase, registry: Registry, folder: Path, *, parallelism: int = 1) -> None:
        if case.visible is None:
            raise ConformanceError(
                f"the case of {case.operator} has no visible=: give a function that reads its output"
            )
        self._case = case
        self._folder = folder
        self._visible = case.visible
        self.subject = OperatorSubject(case, registry, folder)
        self.name = type(self.subject.operator()).__name__
        self.is_committing = self.subject.operator().is_committing()
        self.steps: Sequence[Step] = cut(self.subject.script(), 4)
        self.harness = ParallelHarness(self.subject.operator, inputs=self.subject.schemas, parallelism=parallelism)

    def __enter__(self) -> SinkLife:
        # What a crash leaves open is closed by nobody: that is not a leak of the sink.
        self._quiet = warnings.catch_warnings()
        self._quiet.__enter__()
        warnings.simplefilter("ignore", ResourceWarning)
        return self

    def __exit__(self, *_: object) -> None:
        self.harness.close()
        del self.harness
        gc.collect()
        self._quiet.__exit__(None, None, None)

    def feed(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step:
                case Feed(index, batch):
                    self.harness.process(batch, index)
                case Advance(index, event_time_us):
                    self.harness.watermark(Watermark.event_time(event_time_us), index)

    def run_epochs(self, epochs: int, *, then: Callable[[], None]) -> None:
        """All steps in so many epochs, each of which is committed; `then` follows each, and the end of the data all."""
        for steps in split_steps(self.steps, epochs):
            self.feed(steps)
            self.commit(self.harness.checkpoint())
            then()
        self.harness.end_of_data()
        self.commit(self.harness.checkpoint())

    def begin_again(self, incarnation: str) -> None:
        """As where the job's state was removed: another harness, and the same sink outside."""
        self.harness.close()
        self.harness = ParallelHarness(
            self.subject.operator, inputs=self.subject.schemas, parallelism=1, incarnation=incarnation
        )

    def commit(self, data: Mapping[str, Mapping[int, bytes]], *, token: CommitToken | None = None) -> None:
        if self.is_committing:
            self.harness.commit(data, token=token)

    def visible(self) -> Outcome:
        try:
            return outcome_of(self._visible(self._folder), ignore=self._case.ignore)
        except (FileNotFoundError, NotADirectoryError):
            return Outcome()

    def rows(self, steps: Sequence[Step]) -> Outcome:
        """What these steps should make visible: the rows of the first input, or the last one of each key."""
        batches = [step.batch for step in steps if isinstance(step, Feed)]
        outcome = outcome_of(
            pa.Table.from_batches(batches, schema=self.subject.schemas[0].schema), ignore=self._case.ignore
        )
        if self._case.latest_by:
            outcome.keep_latest(self._case.latest_by, self._case.removed_by)
        return outcome

    def expect(self, steps: Sequence[Step], when: str, fix: str) -> None:
        found = difference(self.rows(steps), self.visible())
        if found is not None:
            raise ConformanceError(f"{self.name} shows other rows than it was given {when}: {found}. {fix}")


def check_every_row_once(case: SinkCase, registry: Registry) -> None:
    """One epoch or many, one subtask or three: in the end every row is visible exactly once."""
    for parallelism, epochs in ((1, 1), (1, 3), (3, 2), (2, 4)):
        with empty_folder() as folder, SinkLife(case, registry, folder, parallelism=parallelism) as life:
            life.run_epochs(epochs, then=life.harness.restore)
            when = f"in {epochs} epochs at parallelism {parallelism}"
            life.expect(life.steps, when, "Stage every row in its epoch, and publish it in handle_commit")


def check_lives_on(case: SinkCase, registry: Registry) -> None:
    """An instance that goes on after its checkpoints shows every row once, as those do that are made again."""
    for parallelism, epochs in ((1, 4), (3, 3)):
        with empty_folder() as folder, SinkLife(case, registry, folder, parallelism=parallelism) as life:
            if not life.subject.operator().lives_on():
                return
            life.run_epochs(epochs, then=life.harness.go_on)
            when = f"when it lives on for {epochs} epochs at parallelism {parallelism}"
            life.expect(life.steps, when, f"It says lives_on(): after a checkpoint it must start over: see {GUIDE}")


def check_nothing_visible_before_its_commit(case: SinkCase, registry: Registry) -> None:
    """What is not committed is not visible: neither while the epoch runs, nor after its checkpoint."""
    with committing(case, registry) as life:
        fix = f"Stage rows where nobody looks, and publish them in handle_commit: see {GUIDE}"
        first, second, *_ = split_steps(life.steps, 2)
        life.feed(first)
        life.expect([], "before the first checkpoint", fix)
        staged = life.harness.checkpoint()
        life.expect([], "after the checkpoint and before its commit", fix)
        life.commit(staged)
        life.expect(first, "after the first commit", fix)
        life.harness.restore()
        life.feed(second)
        life.expect(first, "while the second epoch runs", fix)


def check_commit_twice(case: SinkCase, registry: Registry) -> None:
    """A driver that crashes during a commit does it again: the second time must change nothing."""
    with committing(case, registry) as life:
        fix = (
            "A commit may be repeated: give what an epoch publishes a name that follows from the epoch, and do nothing "
            f"where it is there already: see {GUIDE}"
        )
        first, second, *_ = split_steps(life.steps, 2)
        life.feed(first)
        staged = life.harness.checkpoint()
        life.commit(staged)
        life.commit(staged)
        life.expect(first, "when an epoch is committed twice", fix)
        life.harness.restore()
        life.commit(staged)
        life.expect(first, "when an epoch is committed again after a restart", fix)
        life.feed(second)
        life.commit(life.harness.checkpoint())
        life.expect([*first, *second], "in the epoch after one that was committed twice", fix)


def check_commit_after_a_crash(case: SinkCase, registry: Registry) -> None:
    """A crash between checkpoint and commit: a fresh sink commits from the checkpoint alone, and goes on."""
    with committing(case, registry) as life:
        fix = f"All that a commit needs must be in its commit data, not in the instance: see {GUIDE}"
        first, second, *_ = split_steps(life.steps, 2)
        life.feed(first)
        staged = life.harness.checkpoint()
        life.harness.crash()
        life.commit(staged)
        life.expect(first, "when a fresh instance commits after a crash", fix)
        life.feed(second)
        life.commit(life.harness.checkpoint())
        life.expect([*first, *second], "in the epoch after a crash", fix)


def check_aborted_epochs_leave_nothing(case: SinkCase, registry: Registry) -> None:
    """An epoch that is lost, or that is run twice, shows none of its rows twice."""
    with committing(case, registry) as life:
        fix = f"What an attempt stages must not be published by another: name it in the commit data: see {GUIDE}"
        first, second, *_ = split_steps(life.steps, 2)
        life.feed(first)
        life.commit(life.harness.checkpoint())
        life.harness.restore()
        life.feed(second)
        life.harness.crash()
        life.expect(first, "after an epoch was lost in a crash", fix)
        life.feed(second)
        life.harness.checkpoint(is_lost=True)
        life.harness.crash()
        life.expect(first, "after an epoch was lost whose checkpoint was written and never published", fix)
        life.feed(second)
        life.commit(life.harness.checkpoint())
        life.expect([*first, *second], "when an epoch was lost and run again", fix)


@contextmanager
def committing(case: SinkCase, registry: Registry) -> Iterator[SinkLife]:
    """A life of a sink that takes part in commits; a failure on the way names the sink."""
    with empty_folder() as folder, SinkLife(case, registry, folder) as life:
        operator = life.subject.operator()
        if not operator.is_committing():
            promised = operator.guarantee()
            if promised is Guarantee.EXACTLY_ONCE:
                raise ConformanceError(
                    f"{life.name} promises {promised.label} and takes no part in commits: "
                    "return True from is_committing() and publish in handle_commit, or promise less"
                )
            raise NotApplicable(f"{life.name} takes no part in commits, and promises {promised.label}")
        try:
            yield life
        except ArroyoError as error:
            raise failure_of(life.name, "while epochs are committed", error) from error


def split_steps(steps: Sequence[Step], parts: int) -> list[Sequence[Step]]:
    """So many parts, or more; the last ones may be empty."""
    size = max(1, -(-len(steps) // parts))
    found = [steps[start : start + size] for start in range(0, len(steps), size)]
    if len(found) < parts:
        found += [[]] * (parts - len(found))
    return found


SINK_CHECKS: Mapping[str, Callable[[SinkCase, Registry], None]] = {
    "every_row_once": check_every_row_once,
    "lives_on": check_lives_on,
    "nothing_visible_before_its_commit": check_nothing_visible_before_its_commit,
    "commit_twice": check_commit_twice,
    "commit_after_a_crash": check_commit_after_a_crash,
    "aborted_epochs_leave_nothing": check_aborted_epochs_leave_nothing,
}
