"""The policy that the arguments of a command say."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from arroyo_core.api.limits import UNTRUSTED_SECONDS
from arroyo_core.api.policy import PlanningPolicy, given_roots
from arroyo_core.errors import SetupError

#: Untrusted mode for all commands that have it; others refuse to plan.
UNTRUSTED_VARIABLE = "ARROYO_UNTRUSTED"
#: To start Python and to import the plugins.
_START_SECONDS = 60
_OFF = ("", "0", "false", "no", "off")


def is_untrusted(args: argparse.Namespace) -> bool:
    """Whether the command is to run in untrusted mode; raises `SetupError` where it would plan, and cannot so.

    That is so for every command that does not say otherwise (`Commands.add_parser`).
    """
    if "untrusted" in args:
        return bool(args.untrusted) or _is_wanted()
    if getattr(args, "runs_pipelines", True):
        refuse_if_untrusted()
    return False


def refuse_if_untrusted() -> None:
    """Raise `SetupError` where pipelines are not trusted: for whatever has no untrusted mode, and reads one."""
    if _is_wanted():
        raise SetupError(
            f"{UNTRUSTED_VARIABLE} is set, and this command does more than to look at a pipeline: "
            "validate, plan, graph and lint have an untrusted mode"
        )


def _is_wanted() -> bool:
    return os.environ.get(UNTRUSTED_VARIABLE, "").lower() not in _OFF


def policy_of(args: argparse.Namespace) -> PlanningPolicy:
    """The roots are those that are given, else the folders of the files that are to be planned."""
    roots = (*(Path(root).resolve() for root in getattr(args, "roots", ())), *given_roots())
    if not is_untrusted(args):
        return PlanningPolicy(roots=roots)
    if not roots:
        # The folder of the file as it is named: a link may lead out of it.
        roots = tuple(dict.fromkeys(Path(file).absolute().parent.resolve() for file in planned_files(args)))
    return PlanningPolicy(is_untrusted=True, roots=roots, variables=frozenset(args.variables))


def seconds_for(args: argparse.Namespace) -> int:
    """After which the process of a command is ended, whatever it does."""
    return _START_SECONDS + UNTRUSTED_SECONDS.value * len(planned_files(args))


def planned_files(args: argparse.Namespace) -> Sequence[str]:
    return args.files if "files" in args else [args.file]
