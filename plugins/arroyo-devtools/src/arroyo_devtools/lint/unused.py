"""Findings about what is declared and then not used: parameters and bundles of functions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from arroyo_core.pipeline.plan import UdfKind
from arroyo_core.pipeline.planner import PlannedPipeline
from arroyo_core.pipeline.udfs import texts_of
from arroyo_devtools.lint.findings import Finding


def lint_unused(pipeline: PlannedPipeline) -> Iterator[Finding]:
    yield from _parameters(pipeline)
    yield from _udfs(pipeline)


def _parameters(pipeline: PlannedPipeline) -> Iterator[Finding]:
    for name in pipeline.written.unused_parameters:
        yield Finding(
            code="unused-parameter",
            message=f"nothing uses the parameter {name!r}",
            fix=f"write ${{{name}}} where its value belongs, or take it away",
            at=pipeline.written.parameters[name].at,
        )


def _udfs(pipeline: PlannedPipeline) -> Iterator[Finding]:
    texts = [text.casefold() for node in pipeline.spec.nodes for text in texts_of(node.config)]
    bundles = [pin for pin in pipeline.plan.udfs if pin.kind is UdfKind.BUNDLE]
    # Of a valid pipeline every bundle was opened, and pinned in the order of the file.
    for spec, pin in zip(pipeline.spec.udfs, bundles, strict=True):
        names = [signature.partition("(")[0].casefold() for signature in pin.signatures]
        if not any(_is_called(name, text) for name in names for text in texts):
            functions = ", ".join(pin.signatures) or "nothing"
            yield Finding(
                code="unused-udf",
                message=f"no node calls a function of {pin.key!r}, which has {functions}",
                fix="call one, or take the bundle away",
                at=spec.at,
            )


def _is_called(name: str, text: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text.replace('"', "")) is not None
