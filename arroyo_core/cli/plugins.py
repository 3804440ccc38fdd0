"""`arroyo plugins`: what is installed, what it brings, and what could not be loaded."""

from __future__ import annotations

import argparse
import json

from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.exits import OK
from arroyo_core.cli.options import JSON, add_format
from arroyo_core.plugin import PluginReport, installed_plugins, known_elsewhere

#: What hooks add beside operators and functions, which are listed one by one.
_ADDED = {
    "arroyo_add_command": "commands",
    "arroyo_run_several": "runs of several pipelines",
    "arroyo_observe": "observers of runs",
    "arroyo_progress": "a live view",
    "arroyo_language": "languages",
    "arroyo_section": "sections",
    "arroyo_format": "formats",
    "arroyo_storage": "storage",
    "arroyo_table_type": "table types",
    "arroyo_conformance": "checks",
}


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "plugins",
        group=CommandGroup.EXTENSIONS,
        runs_pipelines=False,
        help="list installed plugins and their operators",
        description="List the installed plugins with their operators, and why any could not be loaded.",
    )
    add_format(parser, formerly=["--json"])
    parser.set_defaults(command=plugins)


def plugins(args: argparse.Namespace) -> int:
    reports = installed_plugins().reports
    if args.format == JSON:
        print(json.dumps([_report_json(report) for report in reports], indent=2))
    elif not reports:
        standard = known_elsewhere("operators").get("std")
        print("No plugins are installed." + (f" The standard operators: pip install {standard}" if standard else ""))
    else:
        print("\n\n".join(_report_text(report) for report in reports))
    return OK


def _report_text(report: PluginReport) -> str:
    lines = [f"{report.origin}  (plugin {report.name!r}, module {report.module})"]
    if report.is_blocked:
        lines.append("  blocked by ARROYO_BLOCK_PLUGINS")
    if report.error:
        lines.append(f"  FAILED: {report.error}")
    lines += [f"  {operator}" for operator in report.operators]
    lines += [f"  {lookup}  lookup" for lookup in report.lookups]
    lines += [f"  {udf}()  UDF" for udf in report.udfs]
    added = [noun for hook, noun in _ADDED.items() if hook in report.hooks]
    if added:
        lines.append(f"  adds {', '.join(added)}")
    if len(lines) == 1:
        lines.append("  registers nothing")
    return "\n".join(lines)


def _report_json(report: PluginReport) -> dict[str, object]:
    return {
        "name": report.name,
        "distribution": report.origin.distribution,
        "version": report.origin.version,
        "module": report.module,
        "operators": list(report.operators),
        "lookups": list(report.lookups),
        "udfs": list(report.udfs),
        "hooks": list(report.hooks),
        "error": report.error,
        "is_blocked": report.is_blocked,
    }
