"""`arroyo new`: starts a plugin, a part of one, a distribution of functions or a pipeline from a template."""

from __future__ import annotations

import argparse
from pathlib import Path

from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.exits import OK

_PARTS = {
    "source": "a distribution with a source, through outages and new partitions, and its conformance tests",
    "sink": "a distribution with an exactly-once sink, and its conformance tests",
    "database": "a distribution with a database as exactly-once sink and as lookup, and its conformance tests",
    "operator": "a distribution with an operator that keeps state, and its conformance tests",
}


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "new",
        group=CommandGroup.EXTENSIONS,
        runs_pipelines=False,
        help="start a source, a sink, a database, an operator, user functions or a pipeline",
        description="Start something new from a template that works as it is: change it into what you want.",
    )
    kinds = parser.add_subparsers(title="kinds", metavar="KIND", required=True)
    for part, help in _PARTS.items():
        parser = kinds.add_parser(part, help=help)
        _add_distribution(parser, example="arroyo-acme", prefix="operators")
        parser.set_defaults(command=new_part, part=part)
    plugin = kinds.add_parser("plugin", help="a distribution with an operator and a sink, and tests of both")
    _add_distribution(plugin, example="arroyo-acme", prefix="operators")
    plugin.set_defaults(command=new_plugin)
    udf = kinds.add_parser("udf", help="a distribution of user functions, which is a bundle too")
    _add_distribution(udf, example="arroyo-udf-acme", prefix="functions")
    udf.set_defaults(command=new_udf)
    pipeline = kinds.add_parser("pipeline", help="a pipeline in YAML that runs at once, and its tests")
    pipeline.add_argument("name", metavar="NAME", help="of the pipeline, such as hot_items")
    _add_into(pipeline)
    pipeline.set_defaults(command=new_pipeline)


def new_part(args: argparse.Namespace) -> int:
    from arroyo_devtools.scaffolding import Part, plugin_names, render_part

    part = Part(args.part)
    names = plugin_names(args.name, args.prefix)
    target = render_part(part, names, args.into)
    print(f"Made {target} with {' and '.join(f'{names.prefix}.{name}' for name in part.operators)}. Next:")
    _print_steps(target, kind="sink" if part is Part.DATABASE else part)
    return OK


def new_plugin(args: argparse.Namespace) -> int:
    from arroyo_devtools.scaffolding import plugin_names, render_plugin

    names = plugin_names(args.name, args.prefix)
    target = render_plugin(names, args.into)
    print(f"Made {target} with {names.prefix}.running_count and a sink, {names.prefix}.sqlite_upsert. Next:")
    _print_steps(target, kind="operator")
    return OK


def new_udf(args: argparse.Namespace) -> int:
    from arroyo_devtools.scaffolding import render_udf, udf_names

    names = udf_names(args.name, args.prefix)
    target = render_udf(names, args.into)
    print(
        f"Made {target} with the functions {names.prefix}_initials, {names.prefix}_share and {names.prefix}_span. Next:"
    )
    print(f"  cd {target}")
    print("  pip install -e . arroyo-testing pytest")
    print("  pytest")
    print("  arroyo udf build .    # a bundle, which pipelines name by URL and nobody installs")
    return OK


def new_pipeline(args: argparse.Namespace) -> int:
    from arroyo_devtools.scaffolding import render_pipeline

    target = render_pipeline(args.name, args.into)
    print(f"Made {target}, and tests of it in {target.stem}_test.yaml. Next:")
    print(f"  arroyo validate {target}")
    print(f"  arroyo test {target}")
    print(f"  arroyo run {target}")
    return OK


def _print_steps(target: Path, *, kind: str) -> None:
    print(f"  cd {target}")
    print("  pip install -e . arroyo-testing pytest hypothesis")
    print(f"  pytest            # its tests, and the rules that every {kind} must keep")
    print("  arroyo plugins    # it is there")


def _add_distribution(parser: argparse.ArgumentParser, *, example: str, prefix: str) -> None:
    parser.add_argument("name", metavar="NAME", help=f"of the distribution, such as {example}")
    parser.add_argument("--prefix", help=f"of the names of its {prefix}; from NAME by default")
    _add_into(parser)


def _add_into(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--into", type=Path, default=Path(), metavar="DIR", help="the folder that will hold it")
