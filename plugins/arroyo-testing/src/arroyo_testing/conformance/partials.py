"""Checks that an operator with a partial operator in front of it gives the same result as without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arroyo_core.api import ArrowOperator, ArroyoSchema, Watermark
from arroyo_core.errors import ArroyoError
from arroyo_testing.conformance.faults import ConformanceError, failure_of
from arroyo_testing.conformance.observed import ObservedOperator
from arroyo_testing.conformance.rows import Outcome
from arroyo_testing.conformance.script import Advance, Feed, Restart, Script, cut, restart_everywhere
from arroyo_testing.conformance.subject import OperatorSubject
from arroyo_testing.parallel import ParallelHarness


def check_partial(subject: OperatorSubject) -> None:
    """Rows that were made fewer before the shuffle give the result of the rows themselves."""
    partial = subject.operator().partial(subject.schemas)
    if partial is None:
        return
    name = type(partial).__name__
    if partial.tables(subject.schemas):
        raise ConformanceError(
            f"{name} has tables, but a partial operator is thrown away: emit all in handle_checkpoint"
        )
    script = cut(subject.script(), 4)
    restarted = restart_everywhere(cut(subject.script(), 2))
    for steps, how in ((script, "in one epoch"), (restarted, "with a restart after every batch")):
        try:
            outcome = _run(subject, steps)
        except ArroyoError as error:
            raise failure_of(f"{subject.name} behind its partial operator {name}", how, error) from error
        found = subject.compare(subject.expected(), outcome, is_ordered=False)
        if found is not None:
            raise ConformanceError(
                f"{subject.name} gives another result behind its partial operator {name}, {how}: {found}. "
                f"{name} must emit what it holds back before a watermark goes on, in handle_checkpoint and in on_close"
            )


class _Behind(ObservedOperator):
    """Typed by the inputs of the partial operator, as the planner does."""

    def __init__(self, inner: ArrowOperator, inputs: Sequence[ArroyoSchema]) -> None:
        super().__init__(inner, lambda output, batch: None)
        self._inputs = inputs

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return self.inner.output_schema(self._inputs)

    def side_outputs(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, ArroyoSchema]:
        return self.inner.side_outputs(self._inputs)

    def routing_keys(self, inputs: Sequence[ArroyoSchema]) -> Sequence[tuple[str, ...] | None]:
        return self.inner.routing_keys(self._inputs)


def _run(subject: OperatorSubject, script: Script) -> Outcome:
    schemas = subject.schemas

    def make_partial() -> ArrowOperator:
        made = subject.operator().partial(schemas)
        if made is None:
            raise ConformanceError(f"{subject.name}.partial() gives an operator at one time and None at another")
        return made

    reduced = make_partial().output_schema(schemas)
    # Two partial operators feed two of the others, each of which merges what both made.
    with (
        ParallelHarness(make_partial, inputs=schemas, parallelism=2) as front,
        ParallelHarness(lambda: _Behind(subject.operator(), schemas), inputs=[reduced], parallelism=2) as back,
    ):
        for step in script:
            match step:
                case Feed(_, batch):
                    front.process(batch)
                    _forward(front, back)
                case Advance(_, event_time_us):
                    front.watermark(Watermark.event_time(event_time_us))
                    _forward(front, back)
                    back.watermark(Watermark.event_time(event_time_us))
                case Restart():
                    front.checkpoint()
                    _forward(front, back)
                    back.checkpoint()
                    front.restore()
                    back.restore()
        front.end_of_data()
        front.checkpoint()
        _forward(front, back)
        back.end_of_data()
        back.checkpoint()
        outcome = Outcome()
        outcome.add(None, back.output, ignore=subject.case.ignore)
        for name in back.side_names:
            outcome.add(name, back.side_output(name), ignore=subject.case.ignore)
        return outcome


def _forward(front: ParallelHarness, back: ParallelHarness) -> None:
    for batch in front.take_output().to_batches():
        back.process(batch)
