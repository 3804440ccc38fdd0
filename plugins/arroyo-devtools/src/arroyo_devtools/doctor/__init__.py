"""`arroyo doctor`: whether this machine, its plugins, a store and Spark are fit to run pipelines."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial

from arroyo_core.api.visible import visible
from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.exits import FAILURE, OK
from arroyo_core.cli.options import JSON, TEXT, add_format, add_planning, add_spark, planning, spark_conf
from arroyo_devtools.doctor.findings import Check, Finding, Level, run_checks, warning

_WIDTH = 8


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "doctor",
        group=CommandGroup.TOOLS,
        help="check Java, Python, packages, plugins, a store and Spark",
        description="Check what pipelines need, one line each: ok, a warning, or failed, with what to do. The exit "
        "code is 1 if anything failed. No data of any job is read or changed, and what is written is deleted.",
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help="a pipeline: checked too, with its checkpoint URL")
    parser.add_argument("--checkpoint", metavar="URL", help="a store to check, instead of the pipeline's own")
    parser.add_argument("--no-spark", action="store_true", help="do not start Spark, which takes some seconds")
    add_spark(parser)
    add_planning(parser, has_parallelism=False)
    add_format(parser, formerly=["--output"])
    parser.set_defaults(command=doctor)


def doctor(args: argparse.Namespace) -> int:
    findings = []
    for finding in _examine(args):
        findings.append(finding)
        if args.format == TEXT:
            print_finding(finding)
    is_ok = all(finding.level is not Level.FAILED for finding in findings)
    if args.format == JSON:
        print(json.dumps({"is_ok": is_ok, "findings": [asdict(finding) for finding in findings]}, indent=2))
    return OK if is_ok else FAILURE


def print_finding(finding: Finding) -> None:
    print(visible(f"{finding.level:<{_WIDTH}}{finding.check}: {finding.message}"), flush=True)
    if finding.fix:
        print(visible(f"{'':<{_WIDTH}}-> {finding.fix}"), flush=True)


def _examine(args: argparse.Namespace) -> Iterator[Finding]:
    from arroyo_devtools.doctor import machine
    from arroyo_devtools.doctor.pipeline import check_plugins, plan_of
    from arroyo_devtools.doctor.store import check_store

    checks: list[tuple[str, Check]] = [
        ("java", machine.check_java_found),
        ("python", machine.check_python),
        ("packages", machine.check_packages),
        ("disk", machine.check_disk),
        ("memory", machine.check_memory),
        ("clock", machine.check_clock),
        ("plugins", check_plugins),
    ]
    yield from run_checks(checks)
    url = args.checkpoint
    if args.file is not None:
        plan, finding = plan_of(args.file, planning(args))
        yield finding
        if plan is not None and url is None:
            url = plan.checkpoint.url
            if url is None:
                yield warning(
                    "store",
                    "the pipeline has no checkpoint URL: what it did is forgotten when it ends",
                    "add checkpoint: {url: ...} to go on after a crash",
                )
    if url is not None:
        yield from run_checks([("store", partial(check_store, url))])
    if not args.no_spark:
        yield from run_checks([("spark", partial(_check_spark, args))])


def _check_spark(args: argparse.Namespace) -> Iterator[Finding]:
    from arroyo_devtools.doctor.session import check_spark

    return check_spark(args.master, spark_conf(args), is_quiet=not args.debug)
