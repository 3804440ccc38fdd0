"""Findings from what the operators say about themselves: watermarks, state, guarantees, side outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from arroyo_core.api import ArroyoSchema, UnboundedState
from arroyo_core.pipeline.foreign import PluginBoundary
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.operators import PlannedOperator
from arroyo_core.pipeline.planner import PlannedPipeline
from arroyo_devtools.lint.findings import Finding


def lint_operators(pipeline: PlannedPipeline, mistakes: Mistakes) -> Iterator[Finding]:
    """Ask every operator; what fails when it is asked is recorded."""
    asked = _Asked(pipeline, mistakes)
    for name in pipeline.operators:
        yield from asked.missing_watermark(name)
        yield from asked.unbounded_state(name)
        yield from asked.unread_outputs(name)
    yield from _weak_sinks(pipeline)


class _Asked:
    def __init__(self, pipeline: PlannedPipeline, mistakes: Mistakes) -> None:
        self._pipeline = pipeline
        self._mistakes = mistakes
        self._bare = self._derive_bare_sources()

    def missing_watermark(self, name: str) -> Iterator[Finding]:
        operator = self._pipeline.operators[name]
        inner = operator.constructed.operator
        if inner is None:
            return
        inputs = self._inputs(operator)
        needs = self._boundary(operator).call("needs_watermark()", lambda: inner.needs_watermark(inputs), expected=bool)
        if not needs:
            return
        sources = sorted({source for read in operator.spec.inputs for source in self._bare[read.id]})
        if sources:
            names = ", ".join(repr(source) for source in sources)
            yield Finding(
                code="missing-watermark",
                message=f"{name!r} ({operator.spec.operator}) waits for watermarks, and none come with the rows of "
                f"{names}: what it holds back comes when the data ends, if ever",
                fix=f"put std.watermark between {names} and {name!r}",
                at=operator.spec.operator_at,
            )

    def unbounded_state(self, name: str) -> Iterator[Finding]:
        operator = self._pipeline.operators[name]
        inner = operator.constructed.operator
        if inner is None:
            return
        inputs = self._inputs(operator)
        boundary = self._boundary(operator)
        answers = boundary.call("unbounded_state()", lambda: (inner.unbounded_state(inputs),), expected=tuple)
        answer = answers[0] if answers else None
        if answer is not None and not isinstance(answer, UnboundedState):
            boundary.add_fault(f"unbounded_state() returned {type(answer).__name__}, not UnboundedState or None")
        elif answer is not None:
            redact = self._pipeline.redact
            yield Finding(
                code="unbounded-state",
                message=f"the state of {name!r} ({operator.spec.operator}) has no limit: {redact(answer.reason)}",
                fix=redact(answer.fix),
                at=operator.spec.operator_at,
            )

    def unread_outputs(self, name: str) -> Iterator[Finding]:
        operator = self._pipeline.operators[name]
        read = {(each.id, each.output) for other in self._pipeline.operators.values() for each in other.spec.inputs}
        for output in self._pipeline.plan.nodes[name].side_schemas:
            if (name, output) not in read:
                yield Finding(
                    code="unread-output",
                    message=f"no node reads {name}.{output}: the rows that {name!r} sets aside there are lost",
                    fix=f"give a sink inputs: [{name}.{output}], or do not set them aside",
                    at=operator.spec.operator_at,
                )

    def _derive_bare_sources(self) -> dict[str, frozenset[str]]:
        """For each node the sources whose rows reach its output without any watermark."""
        bare: dict[str, frozenset[str]] = {}
        # The nodes of a plan come after their inputs.
        for node in self._pipeline.plan.written_nodes():
            operator = self._pipeline.operators[node.id]
            inner = operator.constructed.inner
            emits = self._boundary(operator).call("emits_watermarks()", inner.emits_watermarks, expected=bool)
            if emits:
                bare[node.id] = frozenset()
            elif operator.is_source:
                bare[node.id] = frozenset({node.id})
            else:
                bare[node.id] = frozenset().union(*(bare[read.id] for read in operator.spec.inputs))
        return bare

    def _boundary(self, operator: PlannedOperator) -> PluginBoundary:
        return replace(operator.boundary, mistakes=self._mistakes)

    def _inputs(self, operator: PlannedOperator) -> Sequence[ArroyoSchema]:
        """As the author wrote them, without what the planner puts before a shuffle."""
        nodes = self._pipeline.plan.nodes
        return [
            nodes[read.id].output_schema if read.output is None else nodes[read.id].side_schemas[read.output]
            for read in operator.spec.inputs
        ]


def _weak_sinks(pipeline: PlannedPipeline) -> Iterator[Finding]:
    """Sinks that spoil what all the other nodes keep, in a pipeline that wants to survive a failure."""
    sinks = {name: pipeline.guarantees[name] for name in sorted(pipeline.sinks)}
    others = [pipeline.guarantees[name] for name in pipeline.operators if name not in sinks]
    is_durable = pipeline.plan.checkpoint.url is not None or any(not sink.is_weak for sink in sinks.values())
    if not is_durable or any(other.is_weak for other in others):
        return
    for name, sink in sinks.items():
        if sink.is_weak:
            spec = pipeline.operators[name].spec
            yield Finding(
                code="weak-sink",
                message=f"{name!r} ({spec.operator}) gives {sink.level.label}, in a pipeline that is exactly once "
                f"otherwise: {sink.reason}",
                fix="use a sink that commits with the checkpoint, such as filesystem.sink, or a reader that can "
                "bear it",
                at=spec.operator_at,
            )
