"""Checks of what an operator says about itself."""

from __future__ import annotations

from collections.abc import Mapping

from arroyo_core.api import ArrowOperator, DisplayableOperator, Guarantee, SourceOperator
from arroyo_testing.conformance.faults import ConformanceError
from arroyo_testing.conformance.subject import OperatorSubject, SourceSubject


def check_describes_itself(subject: OperatorSubject | SourceSubject) -> None:
    """Name, display, guarantee, settings and number of inputs are answers that plans can show and checkpoints keep."""
    inner = subject.make().inner
    name = type(inner).__name__
    if inner.name() != subject.case.operator:
        raise ConformanceError(
            f"{name}.name() is {inner.name()!r}, but it is registered as {subject.case.operator!r}: return that"
        )
    _check_display(name, inner)
    if not isinstance(inner.guarantee(), Guarantee):
        raise ConformanceError(f"{name}.guarantee() gives {inner.guarantee()!r}: return a Guarantee")
    if not inner.guarantee_reason().strip():
        raise ConformanceError(f"{name}.guarantee_reason() is empty: say in a clause why {inner.guarantee().label}")
    if isinstance(subject, OperatorSubject):
        _check_operator(subject, subject.operator())
    _check_settings(name, subject)


def _check_display(name: str, inner: ArrowOperator | SourceOperator) -> None:
    shown = inner.display()
    if not isinstance(shown, DisplayableOperator):
        raise ConformanceError(f"{name}.display() gives {shown!r}: return a DisplayableOperator")
    for field in shown.fields:
        if len(field) != 2 or not all(isinstance(part, str) for part in field):
            raise ConformanceError(
                f"{name}.display() has the field {field!r}: give pairs of label and text, both strings"
            )


def _check_settings(name: str, subject: OperatorSubject | SourceSubject) -> None:
    inputs = subject.schemas if isinstance(subject, OperatorSubject) else ()
    # Both at a time, or the second might lie where the first did.
    operators = [subject.make().inner for _ in range(2)]
    found, again = (dict(operator.state_settings(inputs)) for operator in operators)
    for label, text in found.items():
        texts = [label, *text, *text.values()] if isinstance(text, Mapping) else [label, text]
        if not all(isinstance(each, str) for each in texts):
            raise ConformanceError(
                f"{name}.state_settings() gives {label!r}: {text!r}: give labels and texts, both strings, or parts by "
                "name"
            )
        if again.get(label) != text:
            raise ConformanceError(
                f"{name}.state_settings() gives {label!r} as {text!r}, and as {again.get(label)!r} when it is made of "
                "the same config again: a job could never start from its own checkpoint"
            )


def _check_operator(subject: OperatorSubject, operator: ArrowOperator) -> None:
    name, given = type(operator).__name__, len(subject.streams)
    least, most = operator.input_count()
    if given < least or (most is not None and given > most):
        raise ConformanceError(
            f"{name}.input_count() is {(least, most)}, and its case has {given} inputs: fix one of the two"
        )
    schemas = subject.schemas
    subject.output_schema()
    keys = operator.routing_keys(schemas)
    if len(keys) != given:
        raise ConformanceError(f"{name}.routing_keys() has {len(keys)} answers for {given} inputs: give one for each")
    for index, (wanted, schema) in enumerate(zip(keys, schemas, strict=True)):
        unknown = [key for key in wanted or () if key not in schema.names]
        if unknown:
            raise ConformanceError(
                f"{name}.routing_keys() names {unknown[0]!r} for input {index}, which has no such column: "
                f"it has {', '.join(schema.names)}"
            )
    interval = operator.tick_interval()
    if interval is not None and interval.total_seconds() <= 0:
        raise ConformanceError(f"{name}.tick_interval() is {interval}: it must be longer than nothing, or None")
