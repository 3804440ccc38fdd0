"""Finds what a valid pipeline probably does not mean."""

from __future__ import annotations

from dataclasses import replace

from arroyo_core.pipeline.languages import language_of
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.planner import PlannedPipeline
from arroyo_core.plugin import PluginSet
from arroyo_devtools.lint.findings import CODES, Finding
from arroyo_devtools.lint.ignores import silence
from arroyo_devtools.lint.operators import lint_operators
from arroyo_devtools.lint.secrets import lint_secrets, secret_places
from arroyo_devtools.lint.unused import lint_unused

__all__ = ["CODES", "Finding", "lint_pipeline"]


def lint_pipeline(pipeline: PlannedPipeline, *, plugins: PluginSet) -> list[Finding]:
    """The findings of a pipeline by place, without those that a comment silences.

    Raises `InvalidPipelineError` for an operator that fails when it is asked.
    """
    mistakes = Mistakes()
    found = [
        *lint_operators(pipeline, mistakes),
        *lint_secrets(pipeline, plugins),
        *lint_unused(pipeline),
    ]
    mistakes.raise_if_any()
    hidden = {(finding.at.file, finding.at.line) for finding in found if not finding.shows_line}
    hidden |= {(at.file, at.line) for at in secret_places(pipeline, plugins)}
    # Also for what else is found in a line with a secret, silenced or not.
    found = [replace(one, shows_line=(one.at.file, one.at.line) not in hidden) for one in found]
    left = [_in_its_language(one, plugins) for one in silence(found, pipeline.written.texts, plugins)]
    return sorted(left, key=lambda finding: (finding.at.file, finding.at.line, finding.at.column, finding.code))


def _in_its_language(finding: Finding, plugins: PluginSet) -> Finding:
    """With the advice that the language of the file has: operators speak of fields of their configs."""
    advice = language_of(finding.at.file, plugins).advice(finding.code)
    return finding if advice is None else replace(finding, fix=advice)
