"""`arroyo checkpoints seal`: seals for a job that was started without, with another key, or that is to have none."""

from __future__ import annotations

import argparse
import json

from arroyo_core.cli.exits import FAILURE, OK
from arroyo_core.cli.jobs import open_backend
from arroyo_core.cli.options import JSON, add_format
from arroyo_core.errors import SetupError
from arroyo_core.pipeline.views.labels import count
from arroyo_core.runtime.status import leave_stopped
from arroyo_core.state import ParquetBackend
from arroyo_core.state.seals import FILE_VARIABLE, KEY_VARIABLE
from arroyo_jobs.checkpoints.resealing import Resealing, ResealingPlan
from arroyo_jobs.checkpoints.running import add_quiet_arguments, check_ended


def add_seal_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--remove", action="store_true", help="take the seals off, which needs the key as well")
    parser.add_argument("--yes", action="store_true", help="do it; without this flag it is only said")
    add_quiet_arguments(parser)
    add_format(parser)


def seal(args: argparse.Namespace) -> int:
    """Exit code 1 if there is something to do, and it is not done."""
    backend = open_backend(args)
    if not backend.seals.is_on:
        raise SetupError(f"no key is given: set {KEY_VARIABLE} or {FILE_VARIABLE}")
    resealing = Resealing(backend, is_removed=args.remove)
    plan = resealing.plan()
    if args.yes and plan.files:
        if not args.force:
            check_ended(backend, args.quiet_for)
        plan = resealing.carry_out()
        leave_stopped(resealing.claimant)
    is_done = args.yes or not plan.files
    if args.format == JSON:
        answer = {"job": backend.job_id, "is_done": is_done, "epochs": plan.epochs, "unsealed": plan.unsealed}
        print(json.dumps({**answer, "files": plan.files}, indent=2))
    else:
        _print_plan(plan, backend, is_done=is_done, is_removed=args.remove)
    return OK if is_done else FAILURE


def _print_plan(plan: ResealingPlan, backend: ParquetBackend, *, is_done: bool, is_removed: bool) -> None:
    if not plan.files:
        state = "no file has a seal" if is_removed else "every file has the seal of the first key"
        print(f"{backend.job_id}: {state}, there is nothing to do")
        return
    deed = "taken off" if is_removed else "put on"
    word = "are" if is_done else "would be"
    numbers = ", ".join(map(str, plan.epochs)) or "none"
    print(f"{backend.job_id}: seals {word} {deed} {count(len(plan.files), 'file')} (epochs: {numbers})")
    if plan.unsealed and not is_removed:
        taken = ", ".join(map(str, plan.unsealed))
        print(f"epochs {taken} had no seal: they are taken as they are, whoever wrote them")
    if not is_done:
        print("nothing is changed: add --yes to do it")
