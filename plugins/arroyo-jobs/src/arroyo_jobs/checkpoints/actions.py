"""`arroyo checkpoints verify`, `repair` and `seal`: whether a job's checkpoints are whole, and what to do if not."""

from __future__ import annotations

import argparse
import json

from arroyo_core.api.visible import visible
from arroyo_core.cli.arguments import duration_us, epoch
from arroyo_core.cli.commands import Commands
from arroyo_core.cli.exits import FAILURE, OK
from arroyo_core.cli.formats import format_size
from arroyo_core.cli.jobs import open_backend
from arroyo_core.cli.options import JSON, TEXT, add_format
from arroyo_core.cli.state_commands import add_action
from arroyo_core.errors import ConfigError
from arroyo_core.pipeline.views.labels import count
from arroyo_core.runtime.status import leave_stopped
from arroyo_core.state import ParquetBackend
from arroyo_jobs.checkpoints.repair import Repair, RepairPlan
from arroyo_jobs.checkpoints.running import add_quiet_arguments, check_ended
from arroyo_jobs.checkpoints.sealing import add_seal_arguments, seal
from arroyo_jobs.checkpoints.verification import Verdict, Verifier


def add_actions(commands: Commands) -> None:
    actions = commands.actions("checkpoints")
    text = "read every file of every checkpoint, and name what is damaged"
    _add_verify_arguments(add_action(actions, "verify", text, _verify))
    text = "move damaged checkpoints aside, and go on from the last whole one"
    _add_repair_arguments(add_action(actions, "repair", text, _repair))
    text = "seal the checkpoints of a job that you trust with the key of the environment"
    add_seal_arguments(add_action(actions, "seal", text, seal))


def _add_verify_arguments(parser: argparse.ArgumentParser) -> None:
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--all", action="store_true", help="every checkpoint (default)")
    chosen.add_argument("--latest", action="store_true", help="only the newest")
    chosen.add_argument("--epoch", type=epoch, metavar="N", help="only this one")
    add_format(parser)


def _verify(args: argparse.Namespace) -> int:
    """Exit code 1 if any is damaged."""
    backend = open_backend(args)
    verifier = Verifier(backend)
    verdicts = [verifier.verify(number) for number in _epochs(backend, args)]
    if args.format == JSON:
        print(json.dumps([_verdict_json(verdict) for verdict in verdicts], indent=2))
    else:
        for verdict in verdicts:
            _print_verdict(verdict)
    is_whole = all(verdict.is_whole for verdict in verdicts)
    if not is_whole and args.format == TEXT:
        print("`arroyo checkpoints repair` says what can be done")
    return OK if is_whole else FAILURE


def _epochs(backend: ParquetBackend, args: argparse.Namespace) -> list[int]:
    epochs = backend.list_epochs()
    if args.epoch is not None:
        if args.epoch not in epochs:
            has = ", ".join(map(str, epochs))
            raise ConfigError(f"job {backend.job_id!r} has no checkpoint {args.epoch} (it has: {has})")
        return [args.epoch]
    return epochs[-1:] if args.latest else epochs


def _print_verdict(verdict: Verdict) -> None:
    state = "whole" if verdict.is_whole else f"{len(verdict.problems)} damaged"
    print(f"epoch {verdict.epoch}: {count(verdict.files, 'file')}, {format_size(verdict.bytes_read)}, {state}")
    for problem in verdict.problems:
        print(f"  {visible(problem)}")


def _verdict_json(verdict: Verdict) -> dict[str, object]:
    return {
        "epoch": verdict.epoch,
        "is_whole": verdict.is_whole,
        "files": verdict.files,
        "bytes": verdict.bytes_read,
        "problems": list(verdict.problems),
    }


def _add_repair_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do it; without this flag it is only said")
    parser.add_argument(
        "--orphans-older-than",
        type=duration_us,
        metavar="AGE",
        help="also delete files that no checkpoint needs, of that age, such as 7d",
    )
    add_quiet_arguments(parser)
    add_format(parser)


def _repair(args: argparse.Namespace) -> int:
    """Exit code 1 if there is something to do, and it is not done."""
    backend = open_backend(args)
    repairer = Repair(backend)
    plan = repairer.plan(orphan_age_us=args.orphans_older_than)
    folder = None
    if args.yes and not plan.is_empty:
        if not args.force:
            check_ended(backend, args.quiet_for)
        plan = repairer.carry_out(orphan_age_us=args.orphans_older_than)
        folder = repairer.damaged_folder()
        leave_stopped(backend)
    is_done = plan.is_empty or args.yes
    if args.format == JSON:
        answer = {"job": backend.job_id, "is_needed": not plan.is_empty, "is_done": is_done, "moved_to": folder}
        print(json.dumps({**answer, **_plan_json(plan)}, indent=2))
    elif plan.is_empty:
        print(f"{backend.job_id}: every checkpoint is whole, there is nothing to repair")
    else:
        _print_plan(plan, backend, folder=folder)
        if not is_done:
            print("nothing is changed: add --yes to do it")
    return OK if is_done else FAILURE


def _plan_json(plan: RepairPlan) -> dict[str, object]:
    return {
        "problems": list(plan.problems),
        "moved_epochs": list(plan.dropped),
        "moved_files": list(plan.moved),
        "goes_on_from": plan.whole,
        "republished_as": plan.republished,
        "deleted_files": list(plan.orphans),
    }


def _print_plan(plan: RepairPlan, backend: ParquetBackend, *, folder: str | None) -> None:
    """What a repair would do, or where `folder` is given, has done."""
    is_done = folder is not None
    for problem in plan.problems:
        print(visible(problem))
    if plan.dropped:
        where = f"{backend.storage.url}/{folder or f'{backend.job_id}/damaged'}"
        numbers = ", ".join(map(str, plan.dropped))
        verb = "moved" if is_done else "would move"
        print(f"{verb} damaged checkpoints aside: {numbers} ({count(len(plan.moved), 'file')}, to {where})")
    if plan.republished is not None:
        verb = "published" if is_done else "would publish"
        print(f"{verb} the state of epoch {plan.whole} as epoch {plan.republished}, to go on from there")
        print(
            f"what sinks committed after epoch {plan.whole} stays: when the job goes on, the rows that its sources "
            "gave since are read again, and written again"
        )
    elif plan.dropped:
        print(f"the newest checkpoint, epoch {plan.whole}, is whole: the job goes on from it as before")
    if plan.orphans:
        verb = "deleted" if is_done else "would delete"
        print(f"{verb} {len(plan.orphans)} files that no checkpoint needs, such as {visible(plan.orphans[0])}")
