"""`arroyo schema`: the JSON Schema of pipeline files, for editors."""

from __future__ import annotations

import argparse
import json
import sys

from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.exits import OK
from arroyo_core.cli.options import add_output, write_output
from arroyo_core.errors import SetupError
from arroyo_core.pipeline.languages import language_of
from arroyo_core.plugin import installed_plugins


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "schema",
        group=CommandGroup.TOOLS,
        runs_pipelines=False,
        help="print a JSON Schema of pipeline files for editors",
        description="Print the JSON Schema (draft 7) of pipeline files with the operators of the installed plugins. "
        "Editors use it to complete, explain and check; docs/editors.md tells how.",
    )
    add_output(parser)
    parser.add_argument("--tests", action="store_true", help="that of files of tests beside a pipeline")
    parser.set_defaults(command=schema)


def schema(args: argparse.Namespace) -> int:
    # Imported here, because it reads the comments of all plugins: no other command should wait for that.
    from arroyo_devtools.schema import pipeline_schema

    plugins = installed_plugins()
    if args.tests:
        document = language_of("pipeline_test.yaml", plugins).schema()
        if document is None:
            raise SetupError("arroyo-testing reads files of tests, and is not installed: pip install arroyo-testing")
        return _write(document, args.output)
    for report in plugins.reports:
        if report.error:
            print(f"without plugin {report.name!r} ({report.origin}): {report.error}", file=sys.stderr)
    return _write(pipeline_schema(plugins), args.output)


def _write(document: dict[str, object], path: str | None) -> int:
    text = json.dumps(document, indent=2) + "\n"
    write_output(text, path)
    if path is not None:
        print(f"wrote {path}: {document['description']}")
    return OK
