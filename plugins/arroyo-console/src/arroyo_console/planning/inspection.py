"""`arroyo inspect`: the plan of a pipeline with all its mistakes and secrets in clear, as one JSON document."""

from __future__ import annotations

import argparse
import json
from typing import Any

from arroyo_devtools.lint.secrets import lint_secrets

from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.diagnostics import mistake_json
from arroyo_core.cli.exits import MISTAKE, OK
from arroyo_core.cli.options import JSON, add_file, add_format, add_planning, add_untrusted, planning
from arroyo_core.errors import InvalidPipelineError, RefusedError
from arroyo_core.pipeline import PlannedPipeline, plan_file
from arroyo_core.pipeline.views import render_json
from arroyo_core.plugin import installed_plugins

#: How a refusal of untrusted mode begins, wherever it was raised.
REFUSAL = "untrusted mode refuses"


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "inspect",
        group=CommandGroup.TOOLS,
        help="print a pipeline's plan, mistakes and secrets in clear as one JSON document",
        description="Print one JSON document for servers and editors: the mistakes of a pipeline, its plan if it has "
        "none, and where secrets are written in clear. The exit code is 2 if there is any mistake.",
    )
    add_file(parser)
    add_format(parser, (JSON,))
    add_planning(parser)
    add_untrusted(parser)
    parser.set_defaults(command=inspect)


def inspect(args: argparse.Namespace) -> int:
    document: dict[str, Any] = {"problems": [], "secrets": [], "plan": None}
    try:
        pipeline = plan_file(args.file, **planning(args))
    except InvalidPipelineError as invalid:
        document["problems"] = [
            {**mistake_json(error), "is_refusal": isinstance(error, RefusedError) or REFUSAL in error.message}
            for error in invalid.errors
        ]
    else:
        document["plan"] = _plan(pipeline)
        document["secrets"] = [
            {"message": f"{finding.message}: {finding.fix}", "line": finding.at.line, "column": finding.at.column}
            for finding in lint_secrets(pipeline, installed_plugins())
        ]
    print(json.dumps(document))
    return MISTAKE if document["problems"] else OK


def _plan(pipeline: PlannedPipeline) -> Any:
    return json.loads(render_json(pipeline))
