"""`--set NAME=VALUE`: values for the parameters of a pipeline, on every command that reads one."""

from __future__ import annotations

import argparse


def add_set(parser: argparse.ArgumentParser) -> None:
    """Add the option that `given_parameters` reads."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        type=_setting,
        dest="parameters",
        metavar="NAME=VALUE",
        help="a value for a parameter of the pipeline, instead of its default; may be repeated",
    )


def given_parameters(args: argparse.Namespace) -> dict[str, str]:
    """The values by name; of two for one name the last counts."""
    return dict(args.parameters)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r:.100} is not of the form NAME=VALUE")
    return name.strip(), value
