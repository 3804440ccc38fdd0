"""`arroyo docs`: what operators do, in the terminal; or the whole reference, as Markdown."""

from __future__ import annotations

import argparse
import functools
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from arroyo_core.cli.commands import CommandGroup, Commands, RootParser
from arroyo_core.cli.exits import OK
from arroyo_core.cli.options import TEXT, add_format
from arroyo_core.errors import ConfigError, PluginError, SetupError
from arroyo_core.pipeline.mistakes import nearest
from arroyo_core.plugin import PluginSet, installed_plugins

if TYPE_CHECKING:
    from arroyo_devtools.reference.pages import Page

MARKDOWN = "markdown"
_MAX_WIDTH = 100


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "docs",
        group=CommandGroup.TOOLS,
        runs_pipelines=False,
        help="explain an operator or a user function",
        description="Explain an operator: what it does, its settings, what it keeps and gives, and an example. "
        "Without a name, list all operators and user functions that are installed.",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="an operator such as std.filter, or a user function")
    add_format(parser, (TEXT, MARKDOWN), help="markdown: the whole reference, as pages in DIR", formerly=["--markdown"])
    parser.add_argument("-o", "--output", metavar="DIR", help="where the pages go; with --format markdown")
    parser.set_defaults(command=functools.partial(docs, root=commands.root))


def docs(args: argparse.Namespace, *, root: RootParser) -> int:
    plugins = installed_plugins()
    if args.format == MARKDOWN or args.output:
        if args.name or not (args.format == MARKDOWN and args.output):
            raise SetupError("the reference is written as a whole: arroyo docs --format markdown -o DIR")
        return _write_reference(Path(args.output), plugins, root)
    # Imported here, because it reads the comments of all plugins: no other command should wait for that.
    from arroyo_devtools.reference import terminal

    width = min(shutil.get_terminal_size((_MAX_WIDTH, 24)).columns, _MAX_WIDTH)
    if args.name is None:
        print(terminal.overview(plugins, width=width))
    elif args.name in plugins.registry.udfs:
        print(terminal.function_text(plugins.registry.udfs[args.name], plugins, width=width))
    else:
        print(terminal.operator_text(_find(args.name, plugins), plugins, width=width))
    return OK


def _find(name: str, plugins: PluginSet) -> str:
    """The operator that is meant; raises `ConfigError` with what may have been, where there is none."""
    known = plugins.registry.constructors
    if name in known:
        return name
    by_last_part = {operator.partition(".")[2]: operator for operator in sorted(known, reverse=True)}
    if "." not in name and sum(operator.endswith(f".{name}") for operator in known) == 1:
        return by_last_part[name]
    try:
        plugins.constructor(name)
    except PluginError as error:
        if name in plugins.conflicts or not error.message.startswith("unknown operator"):
            raise
    last = nearest(name.rpartition(".")[2], by_last_part)
    near = nearest(name, [*known, *plugins.registry.udfs]) or (by_last_part[last] if last else None)
    hint = f"did you mean {near}?" if near else "`arroyo docs` lists them all"
    raise ConfigError(f"there is no operator or user function {name!r}: {hint}")


def _write_reference(folder: Path, plugins: PluginSet, root: RootParser) -> int:
    from arroyo_devtools.reference.pages import MARK, reference_pages

    pages = reference_pages(plugins, root)
    try:
        old = {path for path in folder.rglob("*.md") if path.read_text(encoding="utf-8").startswith(MARK)}
        written = list(_write_pages(folder, pages))
        for path in old - {folder / page.path for page in pages}:
            path.unlink()
            written.append(path)
    except OSError as error:
        raise SetupError(f"cannot write the reference to {folder}: {error.strerror or error}") from error
    print(f"{folder}: {len(pages)} pages, {len(written)} changed")
    return OK


def _write_pages(folder: Path, pages: Iterable[Page]) -> Iterable[Path]:
    """Write what is not there yet, and tell its path."""
    for page in pages:
        path = folder / page.path
        if path.exists() and path.read_text(encoding="utf-8") == page.text:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page.text, encoding="utf-8")
        yield path
