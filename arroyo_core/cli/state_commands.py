"""`arroyo checkpoints` and `arroyo state`: looking into what a job has stored; nothing here changes any of it."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from arroyo_core.api.visible import visible
from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.exits import OK
from arroyo_core.cli.formats import format_size
from arroyo_core.cli.jobs import add_job_arguments, open_backend
from arroyo_core.cli.options import JSON, TEXT, add_format, add_output
from arroyo_core.cli.tables import plain_value, print_rows
from arroyo_core.errors import ConfigError, naming_path
from arroyo_core.proto.state_pb2 import CheckpointMetadata, DistributionDigest
from arroyo_core.runtime.udf_changes import ACCEPTED
from arroyo_core.state import ParquetBackend
from arroyo_core.state.fork import forked_from
from arroyo_core.state.inspection import (
    diff_tables,
    read_table,
    summarize_checkpoints,
    summarize_tables,
)

FORMATS = (TEXT, "csv", JSON, "parquet")


def add_command(commands: Commands) -> None:
    """Add `checkpoints ls|show` and `state tables|cat|diff`."""
    checkpoints = commands.add_parser(
        "checkpoints",
        group=CommandGroup.STATE,
        runs_pipelines=False,
        help="list, show, verify, repair and seal checkpoints",
    )
    actions = checkpoints.add_subparsers(title="actions", metavar="ACTION", required=True)
    add_action(actions, "ls", "list the checkpoints of a job", _ls, formats=(TEXT, JSON))
    add_action(actions, "show", "show one checkpoint with its tables", _show, formats=(TEXT, JSON), epoch=True)

    state = commands.add_parser(
        "state", group=CommandGroup.STATE, runs_pipelines=False, help="read the state tables of a checkpoint"
    )
    actions = state.add_subparsers(title="actions", metavar="ACTION", required=True)
    add_action(actions, "tables", "list the tables of a checkpoint", _tables, formats=(TEXT, JSON), epoch=True)
    for name, text, command in (
        ("cat", "print the rows of a table", _cat),
        ("diff", "print the rows of a table that went and came between two epochs", _diff),
    ):
        parser = add_action(actions, name, text, command, formats=FORMATS, epoch=name == "cat")
        parser.add_argument("table", metavar="OPERATOR.TABLE", help="as `arroyo state tables` lists it")
        if name == "diff":
            parser.add_argument("--from", dest="before", type=int, metavar="EPOCH", help="default: the one before")
            parser.add_argument("--to", dest="epoch", type=int, metavar="EPOCH", help="default: the latest")
        add_output(parser, help="write there, not to stdout; parquet needs it")


def add_action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    command: Any,
    *,
    formats: tuple[str, ...] = (),
    epoch: bool = False,
) -> argparse.ArgumentParser:
    """Add an action on one job, which `open_backend` opens, to `checkpoints` or `state`."""
    parser = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    add_job_arguments(parser)
    if epoch:
        parser.add_argument("--epoch", type=int, metavar="N", help="default: the latest")
    if formats:
        add_format(parser, formats)
    parser.set_defaults(command=command)
    return parser


def _ls(args: argparse.Namespace) -> int:
    backend = open_backend(args)
    rows = [asdict(summary) for summary in summarize_checkpoints(backend)]
    if args.format == JSON:
        print(json.dumps(rows, indent=2))
        return OK
    columns = ["epoch", "finished", "state", "incarnation", "generation", "operators", "files", "written", "live"]
    print_rows(columns, [_ls_row(row) for row in rows])
    return OK


def _ls_row(row: dict[str, Any]) -> list[object]:
    if row["error"]:
        return [row["epoch"], "-", "DAMAGED", "-", "-", "-", "-", "-", row["error"]]
    state = "ready" if row["is_committed"] or not row["needs_commit"] else "committing"
    finished = _time(row["finish_time_us"])
    sizes = [format_size(row["bytes_written"]), format_size(row["bytes_live"])]
    owner = [row["incarnation"] or "-", row["generation"]]
    return [row["epoch"], finished, state, *owner, row["operators"], row["files"], *sizes]


def _udf(udf: DistributionDigest) -> str:
    return f"{udf.name} {udf.version}" + (f" (sha256 {udf.sha256.hex()[:12]})" if udf.sha256 else "")


def _show(args: argparse.Namespace) -> int:
    backend = open_backend(args)
    metadata = _checkpoint(backend, args.epoch)
    facts: dict[str, object] = {
        "job": metadata.job_id,
        "epoch": metadata.epoch,
        "min_epoch": metadata.min_epoch,
        "parent_epoch": metadata.parent_epoch,
        "forked_from": str(forked_from(metadata) or "-"),
        "incarnation": metadata.incarnation or "-",
        "generation": metadata.generation,
        "started": _time(metadata.start_time_us),
        "finished": _time(metadata.finish_time_us),
        "needs_commit": metadata.needs_commit,
        "is_committed": backend.is_committed(metadata.epoch),
        "is_final": metadata.is_final,
        "plugins": [f"{plugin.name} {plugin.version}" for plugin in metadata.plugins],
        "udfs": [_udf(udf) for udf in metadata.udfs],
        "accepted_udf_changes": [
            f"{change['name']}: {change['before']} to {change['after']}, from epoch {change['epoch']}"
            for change in json.loads(metadata.properties.get(ACCEPTED, b"[]"))
        ],
    }
    operators = [
        {
            "operator": operator.operator_metadata.operator_id,
            "parallelism": operator.operator_metadata.parallelism,
            "watermark": _time(operator.operator_metadata.min_watermark_us)
            if operator.operator_metadata.HasField("min_watermark_us")
            else "-",
            "tables": ", ".join(sorted(operator.table_checkpoint_metadata)) or "-",
            "bytes_written": operator.bytes,
        }
        for operator in metadata.operators
    ]
    if args.format == JSON:
        print(json.dumps({**facts, "operators": operators}, indent=2))
        return OK
    for name, value in facts.items():
        print(f"{name + ':':14}{visible(', '.join(value) if isinstance(value, list) else str(value))}")
    print()
    if operators:
        print_rows(list(operators[0]), [list(operator.values()) for operator in operators])
    return OK


def _tables(args: argparse.Namespace) -> int:
    summaries = summarize_tables(_checkpoint(open_backend(args), args.epoch))
    if args.format == JSON:
        print(json.dumps([asdict(summary) for summary in summaries], indent=2))
        return OK
    rows: list[list[object]] = [
        [f"{s.operator}.{s.table}", s.kind, s.files, s.rows, format_size(s.bytes_live), s.version] for s in summaries
    ]
    print_rows(["table", "kind", "files", "rows", "size", "version"], rows)
    return OK


def _cat(args: argparse.Namespace) -> int:
    backend = open_backend(args)
    operator, table = _table_name(args.table)
    return _write(read_table(backend.storage, _checkpoint(backend, args.epoch), operator, table), args)


def _diff(args: argparse.Namespace) -> int:
    backend = open_backend(args)
    operator, table = _table_name(args.table)
    after = _checkpoint(backend, args.epoch)
    before_epoch = args.before
    if before_epoch is None:
        earlier = [epoch for epoch in backend.list_epochs() if epoch < after.epoch]
        if not earlier:
            raise ConfigError(f"epoch {after.epoch} is the oldest checkpoint there is: nothing to compare it with")
        before_epoch = earlier[-1]
    before = backend.load_checkpoint_metadata(backend.job_id, before_epoch)
    tables = [read_table(backend.storage, metadata, operator, table) for metadata in (before, after)]
    return _write(diff_tables(*tables), args)


def _checkpoint(backend: ParquetBackend, epoch: int | None) -> CheckpointMetadata:
    epochs = backend.list_epochs()
    if epoch is None:
        return backend.load_checkpoint_metadata(backend.job_id, epochs[-1])
    if epoch not in epochs:
        raise ConfigError(f"job {backend.job_id!r} has no checkpoint {epoch} (it has: {', '.join(map(str, epochs))})")
    return backend.load_checkpoint_metadata(backend.job_id, epoch)


def _table_name(text: str) -> tuple[str, str]:
    operator, dot, table = text.rpartition(".")
    if not dot:
        raise ConfigError(f"{text!r} names no table: write OPERATOR.TABLE, as `arroyo state tables` lists them")
    return operator, table


def _write(table: pa.Table, args: argparse.Namespace) -> int:
    if args.format == "parquet":
        if not args.output:
            raise ConfigError("Parquet cannot be printed: give --output FILE")
        with naming_path(args.output):
            pq.write_table(table, args.output)
        return OK
    if args.output:
        with naming_path(args.output), Path(args.output).open("w", encoding="utf-8", newline="") as file:
            _print_table(table, args.format, file)
        return OK
    _print_table(table, args.format, sys.stdout)
    return OK


def _print_table(table: pa.Table, kind: str, file: Any) -> None:
    names = table.column_names
    if kind == JSON:
        for row in table.to_pylist():
            print(json.dumps(row, default=plain_value), file=file)
    elif kind == "csv":
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([[plain_value(value) for value in row.values()] for row in table.to_pylist()])
    else:
        print_rows(names, [[plain_value(value) for value in row.values()] for row in table.to_pylist()], file)


def _time(time_us: int) -> str:
    if not time_us:
        return "-"
    return datetime.fromtimestamp(time_us / 1e6, UTC).isoformat(timespec="milliseconds") if time_us < 2**57 else "end"
