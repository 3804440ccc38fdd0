"""Adds `arroyo files compact`."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict

from arroyo_core.api.units import DURATION_UNITS, format_bytes, parse_bytes
from arroyo_core.cli.arguments import duration_us
from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.exits import OK
from arroyo_core.cli.options import JSON, add_format
from arroyo_core.errors import ConfigError
from arroyo_filesystem.compaction import Compacted, Compaction, OutputFile
from arroyo_filesystem.location import absolute_path, open_location

FILE_BYTES = 128 * 2**20
#: A driver that lost its job may still be about to move files that another one has committed.
OLDER_THAN_US = 10 * DURATION_UNITS["m"]


def add_command(commands: Commands) -> None:
    """Add `files compact`."""
    parser = commands.add_parser("files", group=CommandGroup.STATE, help="look after the files of filesystem.sink")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    text = "make large files of small ones that are committed, also while jobs write there"
    compact = actions.add_parser("compact", help=text, description=text[0].upper() + text[1:] + ".")
    compact.set_defaults(command=_compact)
    compact.add_argument("path", metavar="PATH", help="the path of a filesystem.sink: a folder or a URL")
    compact.add_argument(
        "--file-size",
        type=_size,
        default=FILE_BYTES,
        metavar="SIZE",
        help="files below half of this size become files of about this size (default: 128MiB)",
    )
    compact.add_argument(
        "--older-than",
        type=duration_us,
        default=OLDER_THAN_US,
        metavar="TIME",
        help="leave younger files alone (default: 10m)",
    )
    compact.add_argument(
        "--storage-option",
        type=_option,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the filesystem, as in storage_options of the sink; may be repeated",
    )
    compact.add_argument("--dry-run", action="store_true", help="only say what would be done")
    add_format(compact)


def _compact(args: argparse.Namespace) -> int:
    options = dict(args.storage_option)
    location = open_location(absolute_path(args.path), options, field="PATH")
    if not location.fs.exists(location.path):
        raise ConfigError(f"there is no {location.url!r}", value=args.path)
    compaction = Compaction(
        location,
        options,
        file_bytes=args.file_size,
        older_than_us=args.older_than,
        now_us=time.time_ns() // 1000,
    )
    done = _planned(compaction.plan()) if args.dry_run else compaction.run()
    if args.format == JSON:
        print(json.dumps(asdict(done) | {"is_dry_run": args.dry_run}))
    elif not done.merged:
        print("nothing to compact")
    else:
        verb = "would become" if args.dry_run else "became"
        print(f"{done.merged} files {verb} {done.files}, of {format_bytes(done.bytes)}")
    return OK


def _planned(groups: Sequence[Sequence[OutputFile]]) -> Compacted:
    files = [file for group in groups for file in group]
    return Compacted(merged=len(files), files=len(groups), bytes=sum(file.size for file in files))


def _size(text: str) -> int:
    try:
        size = parse_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if size < 1:
        raise argparse.ArgumentTypeError("the size must be more than zero")
    return size


def _option(text: str) -> tuple[str, str]:
    name, is_set, value = text.partition("=")
    if not is_set or not name:
        raise argparse.ArgumentTypeError("it is written NAME=VALUE")
    return name, value
