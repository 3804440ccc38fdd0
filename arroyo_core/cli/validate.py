"""`arroyo validate`: every mistake of the given files, and nothing is run."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from arroyo_core.api.visible import visible
from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.diagnostics import mistake_json, print_mistake
from arroyo_core.cli.exits import MISTAKE, OK
from arroyo_core.cli.options import (
    JSON,
    add_files,
    add_format,
    add_planning,
    add_untrusted,
    bundle_opener,
    given_parameters,
    planning,
)
from arroyo_core.cli.planning_time import planning_time
from arroyo_core.errors import InvalidPipelineError, PipelineError
from arroyo_core.pipeline import Plan, plan_pipeline
from arroyo_core.pipeline.languages import language_of
from arroyo_core.pipeline.views.labels import count
from arroyo_core.plugin import installed_plugins


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "validate",
        group=CommandGroup.PIPELINES,
        help="check pipeline files without running them",
        description="Check pipeline files: shape, operators, configs, connections and column types. "
        "Exit code 0 when all are valid, 2 when any is not.",
    )
    add_files(parser, help="a pipeline in YAML or SQL, or its tests in NAME_test.yaml")
    add_format(parser, help="json: the mistakes as a list on stdout", formerly=["--json"])
    add_planning(parser, has_parallelism=False)
    add_untrusted(parser)
    parser.set_defaults(command=validate)


def validate(args: argparse.Namespace) -> int:
    mistakes: list[PipelineError] = []
    for file in args.files:
        try:
            with planning_time(file):
                size = _check(file, args)
        except InvalidPipelineError as invalid:
            mistakes += invalid.errors
            if args.format != JSON:
                _show(file, invalid, is_debug=args.debug)
        else:
            if args.format != JSON:
                print(visible(f"{file}: valid ({size})"))
    if args.format == JSON:
        print(json.dumps([mistake_json(error) for error in mistakes], indent=2))
    return MISTAKE if mistakes else OK


def _check(file: str, args: argparse.Namespace) -> str:
    """Raises `InvalidPipelineError`; returns how large the file is."""
    other = language_of(file, installed_plugins()).check(
        Path(file), bundles=bundle_opener(args), parameters=given_parameters(args)
    )
    return other if other is not None else _size(plan_pipeline(file, **planning(args)))


def _show(file: str, invalid: InvalidPipelineError, *, is_debug: bool) -> None:
    for error in invalid.errors:
        print_mistake(error, is_debug=is_debug)
    print(visible(f"{file}: {count(len(invalid.errors), 'mistake')}"), file=sys.stderr)


def _size(plan: Plan) -> str:
    counts = ((len(plan.nodes), "node"), (len(plan.chains), "chain"), (plan.wave_count, "wave"))
    return ", ".join(count(number, noun) for number, noun in counts)
