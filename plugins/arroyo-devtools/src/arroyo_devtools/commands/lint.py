"""`arroyo lint`: what a valid pipeline probably does not mean, and how to fix it."""

from __future__ import annotations

import argparse
import json
import sys

from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.diagnostics import excerpt, gutter_of, mistake_json, print_mistake, print_report
from arroyo_core.cli.exits import MISTAKE, OK
from arroyo_core.cli.options import JSON, add_format, add_planning, add_untrusted, planning
from arroyo_core.cli.planning_time import planning_time
from arroyo_core.errors import InvalidPipelineError, PipelineError
from arroyo_core.pipeline import plan_file
from arroyo_core.pipeline.views.labels import count
from arroyo_core.plugin import installed_plugins
from arroyo_devtools.lint import Finding, lint_pipeline

#: Some file has a finding, and none has a mistake.
FOUND = 1
#: The code of a mistake that has none of its own.
_INVALID = "invalid-pipeline"


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "lint",
        group=CommandGroup.PIPELINES,
        help="find what a pipeline probably does not mean",
        description="Find missing watermarks, state without limit, weak sinks, secrets in clear and what is not used. "
        "A comment with 'arroyo: ignore[code]' silences its line. Exit code 0 when nothing is found, 1 when there are "
        "warnings, 2 when a file is not valid.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a pipeline")
    add_format(parser, formerly=["--output"])
    add_planning(parser, has_parallelism=False)
    add_untrusted(parser)
    parser.set_defaults(command=lint)


def lint(args: argparse.Namespace) -> int:
    findings: list[Finding] = []
    mistakes: list[PipelineError] = []
    for file in args.files:
        try:
            findings += _lint_file(file, args)
        except InvalidPipelineError as invalid:
            mistakes += invalid.errors
    if args.format == JSON:
        errors = [{"severity": "error", "code": error.code or _INVALID} | mistake_json(error) for error in mistakes]
        print(json.dumps([*errors, *(_finding_json(finding) for finding in findings)], indent=2))
    else:
        for finding in findings:
            print_report(f"{render_finding(finding)}\n", sys.stdout, colour="yellow")
        for error in mistakes:
            print_mistake(error, is_debug=args.debug)
        print(_summary(len(args.files), len(findings), len(mistakes)), file=sys.stderr)
    if mistakes:
        return MISTAKE
    return FOUND if findings else OK


def render_finding(finding: Finding) -> str:
    """`file:line:column: message [code]`, the line with a caret, and how to fix it."""
    lines = [f"{finding.at}: {finding.message} [{finding.code}]"]
    if finding.shows_line:
        lines += excerpt(finding.at)
    return "\n".join([*lines, f"{gutter_of(finding.at)}  {finding.fix}"])


def _lint_file(file: str, args: argparse.Namespace) -> list[Finding]:
    with planning_time(file):
        return lint_pipeline(plan_file(file, **planning(args)), plugins=installed_plugins())


def _finding_json(finding: Finding) -> dict[str, object]:
    return {
        "severity": "warning",
        "code": finding.code,
        "file": finding.at.file,
        "line": finding.at.line,
        "column": finding.at.column,
        "message": finding.message,
        "fix": finding.fix,
    }


def _summary(files: int, findings: int, mistakes: int) -> str:
    counts = [count(findings, "warning")] if findings or not mistakes else []
    counts += [count(mistakes, "mistake")] if mistakes else []
    return f"{count(files, 'file')}: {', '.join(counts)}"
