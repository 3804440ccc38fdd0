"""`arroyo new`: starts a plugin, a distribution of functions or a pipeline from a template."""

from __future__ import annotations

import argparse
from pathlib import Path

from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.exits import OK


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "new",
        group=CommandGroup.EXTENSIONS,
        help="start a plugin, user functions or a pipeline",
        description="Start something new from a template that works as it is: change it into what you want.",
    )
    kinds = parser.add_subparsers(title="kinds", metavar="KIND", required=True)
    plugin = kinds.add_parser("plugin", help="a distribution with an operator, its tests and its conformance tests")
    _add_distribution(plugin, example="arroyo-acme", prefix="operators")
    plugin.set_defaults(command=new_plugin)
    udf = kinds.add_parser("udf", help="a distribution of user functions, which is a bundle too")
    _add_distribution(udf, example="arroyo-udf-acme", prefix="functions")
    udf.set_defaults(command=new_udf)
    pipeline = kinds.add_parser("pipeline", help="a pipeline in YAML that runs at once, and its tests")
    pipeline.add_argument("name", metavar="NAME", help="of the pipeline, such as hot_items")
    _add_into(pipeline)
    pipeline.set_defaults(command=new_pipeline)


def new_plugin(args: argparse.Namespace) -> int:
    from arroyo_devtools.scaffolding import plugin_names, render_plugin

    names = plugin_names(args.name, args.prefix)
    target = render_plugin(names, args.into)
    print(f"Made {target} with {names.prefix}.running_count and a sink, {names.prefix}.sqlite_upsert. Next:")
    print(f"  cd {target}")
    print("  pip install -e . pytest hypothesis")
    print("  pytest            # its tests, and the rules that every operator must keep")
    print("  arroyo plugins    # it is there")
    return OK


def new_udf(args: argparse.Namespace) -> int:
    from arroyo_devtools.scaffolding import render_udf, udf_names

    names = udf_names(args.name, args.prefix)
    target = render_udf(names, args.into)
    print(
        f"Made {target} with the functions {names.prefix}_initials, {names.prefix}_share and {names.prefix}_span. Next:"
    )
    print(f"  cd {target}")
    print("  pip install -e . pytest")
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


def _add_distribution(parser: argparse.ArgumentParser, *, example: str, prefix: str) -> None:
    parser.add_argument("name", metavar="NAME", help=f"of the distribution, such as {example}")
    parser.add_argument("--prefix", help=f"of the names of its {prefix}; from NAME by default")
    _add_into(parser)


def _add_into(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--into", type=Path, default=Path(), metavar="DIR", help="the folder that will hold it")
