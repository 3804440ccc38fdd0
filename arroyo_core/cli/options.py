"""Options that several commands have, declared once: of planning, of Spark, and of what is printed."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arroyo_core.api.policy import ROOTS_VARIABLE, current_policy
from arroyo_core.api.visible import visible
from arroyo_core.cli.arguments import parallelism
from arroyo_core.cli.confined.policies import UNTRUSTED_VARIABLE
from arroyo_core.cli.diagnostics import give_text
from arroyo_core.errors import SetupError
from arroyo_core.pipeline.inline import InlineText
from arroyo_core.plugin import installed_plugins

if TYPE_CHECKING:
    from arroyo_core.pipeline.planner import Planning
    from arroyo_core.runtime.user_code import BundleOpener

TEXT, JSON = "text", "json"


def add_file(parser: argparse.ArgumentParser, *, help: str = "a pipeline in YAML or SQL") -> None:
    """Add `args.file`: the file of a pipeline, or the name of the text that `-q` gives."""
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("file", nargs="?", default=argparse.SUPPRESS, metavar="FILE", help=help)
    _add_query(parser, group)


def add_files(parser: argparse.ArgumentParser, *, help: str) -> None:
    """Add `args.files` likewise: at least one."""
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("files", nargs="*", default=argparse.SUPPRESS, metavar="FILE", help=help)
    _add_query(parser, group)
    parser.set_defaults(takes_several=True)


def take_query(args: argparse.Namespace) -> None:
    """Put the text of `-q` where a file would be; `main` does so."""
    query = getattr(args, "query", None)
    if query is None:
        return
    text = InlineText(f"query.{args.language}", query)
    give_text(str(text), query)
    if getattr(args, "takes_several", False):
        args.files = [text]
    else:
        args.file = text


def _add_query(parser: argparse.ArgumentParser, group: argparse._MutuallyExclusiveGroup) -> None:
    group.add_argument("-q", "--query", metavar="TEXT", help="the pipeline itself, instead of a file")
    parser.add_argument(
        "--language",
        type=_language,
        default="sql",
        metavar="NAME",
        help="of -q: the ending of its files (default: sql)",
    )


def _language(text: str) -> str:
    name = text.removeprefix(".")
    if not re.fullmatch(r"\w+", name):
        raise argparse.ArgumentTypeError(f"{text!r:.100} is not the ending of a file, such as sql or yaml")
    return name


def add_planning(parser: argparse.ArgumentParser, *, has_parallelism: bool = True) -> None:
    """Add what `planning` reads: the options of every command that plans a pipeline."""
    parser.set_defaults(runs_pipelines=True)
    group = parser.add_argument_group("the pipeline")
    if has_parallelism:
        group.add_argument("--parallelism", type=parallelism, metavar="N", help="instead of the pipeline's own number")
    group.add_argument(
        "--set",
        action="append",
        default=[],
        type=_setting,
        dest="parameters",
        metavar="NAME=VALUE",
        help="a value for a parameter of the pipeline, instead of its default; may be repeated",
    )
    group.add_argument(
        "--root",
        action="append",
        default=[],
        dest="roots",
        metavar="DIR",
        help=f"a folder that the pipeline may include files of, beside its own; may be repeated ({ROOTS_VARIABLE})",
    )
    group.add_argument(
        "--insecure-udfs",
        action="store_true",
        help="use remote bundles of UDFs as they are, where the pipeline gives no sha256",
    )


def add_untrusted(parser: argparse.ArgumentParser) -> None:
    """Add untrusted mode, for a command that only looks at pipelines; `main` confines it."""
    group = parser.add_argument_group("a pipeline of somebody else")
    group.add_argument(
        "--untrusted",
        action="store_true",
        help="run no code that the pipeline chooses, reach no network, read no files but those below its folder or "
        f"--root, and no variables but those of --allow-env ({UNTRUSTED_VARIABLE}=1)",
    )
    group.add_argument(
        "--allow-env",
        action="append",
        default=[],
        dest="variables",
        metavar="NAME",
        help="with --untrusted: a variable of the environment that the pipeline may read; may be repeated",
    )


def planning(args: argparse.Namespace) -> Planning:
    """The arguments of `plan_file` and `plan_pipeline`."""
    return {
        "plugins": installed_plugins(),
        "environment": os.environ,
        "parallelism": getattr(args, "parallelism", None),
        "bundles": bundle_opener(args),
        "parameters": given_parameters(args),
    }


def given_parameters(args: argparse.Namespace) -> Mapping[str, str]:
    """The values by name; of two for one name the last counts."""
    return dict(args.parameters)


def bundle_opener(args: argparse.Namespace) -> BundleOpener:
    """What opens the pipeline's bundles of user functions."""
    from arroyo_core.runtime.user_code import BundleOpener

    return BundleOpener(allows_unpinned=args.insecure_udfs)


def add_spark(parser: argparse.ArgumentParser, *, default: str | None = None) -> None:
    """Add `--master` and `--conf`, which `spark_conf` reads; `default` is the master where none is given."""
    group = parser.add_argument_group("Spark")
    otherwise = (
        default or "that of spark-submit, of spark-defaults.conf or of the variable MASTER, and else this machine"
    )
    group.add_argument(
        "--master",
        default=default,
        metavar="URL",
        help=f"the Spark master, such as local[4] or spark://host:7077 (default: {otherwise})",
    )
    group.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a Spark setting; may be repeated"
    )


def spark_conf(args: argparse.Namespace) -> dict[str, str]:
    """The settings of `--conf` by their keys; raises `SetupError` for what is not one."""
    conf = {}
    for pair in args.conf:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise SetupError(f"--conf takes key=value, not {pair!r}")
        conf[key] = value
    return conf


def add_output(parser: argparse.ArgumentParser, *, help: str = "write there, not to stdout") -> None:
    """Add `-o FILE`: where to write what is printed otherwise."""
    parser.add_argument("-o", "--output", metavar="FILE", help=help)


def write_output(data: str | bytes, path: str | None) -> None:
    """Write to the file of `-o`, or print; raises `SetupError` where the file cannot be written.

    In untrusted mode everything is printed, and the process that waits for it writes the file.
    """
    if path is not None and current_policy().is_untrusted:
        sys.stdout.buffer.write(data.encode() if isinstance(data, str) else data)
        return
    if path is None:
        text = data.decode() if isinstance(data, bytes) else data
        # A file or another program gets it as it is.
        print(visible(text) if sys.stdout.isatty() else text, end="")
        return
    try:
        Path(path).write_bytes(data.encode() if isinstance(data, str) else data)
    except OSError as error:
        raise SetupError(f"cannot write {path}: {error.strerror or error}") from error


def add_format(
    parser: argparse.ArgumentParser,
    formats: Collection[str] = (TEXT, JSON),
    *,
    help: str | None = None,
    formerly: Sequence[str] = (),
) -> None:
    """Add `--format`, of which the first is the default. `formerly` are other options that said the same before.

    They work for one more version, with a hint: one that is called like a format, as `--json`, or one with a format.
    """
    default = next(iter(formats))
    told = f"{help} (default: {default})" if help else f"default: {default}"
    parser.add_argument("--format", choices=formats, type=_format, default=default, help=told)
    for option in formerly:
        hidden: dict[str, Any] = {"dest": "format", "default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
        name = option.removeprefix("--")
        value: dict[str, Any] = (
            {"nargs": 0, "const": name} if name in formats else {"choices": formats, "type": _format}
        )
        parser.add_argument(option, action=_FormerFormat, **hidden, **value)


class _FormerFormat(argparse.Action):
    def __call__(self, parser: object, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        namespace.format = self.const or values
        print(f"arroyo: {option} is now --format {namespace.format}", file=sys.stderr)


def _format(text: str) -> str:
    # What `text` was called for tables.
    if text != "table":
        return text
    print(f"arroyo: --format table is now --format {TEXT}", file=sys.stderr)
    return TEXT


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r:.100} is not of the form NAME=VALUE")
    return name.strip(), value
