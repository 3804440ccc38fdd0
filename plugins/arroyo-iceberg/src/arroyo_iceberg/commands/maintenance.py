"""`arroyo iceberg snapshots`, `expire` and `orphans`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from arroyo_core.api.urls import redact_url
from arroyo_core.cli.exits import OK
from arroyo_core.cli.options import JSON, planning
from arroyo_core.cli.tables import print_rows
from arroyo_core.errors import ConfigError
from arroyo_core.pipeline import plan_file
from arroyo_iceberg.catalog import TableName, check_catalog, read_table_name, translated
from arroyo_iceberg.iceberg_pb2 import SinkConfig, SourceConfig
from arroyo_iceberg.sweeping import list_files

if TYPE_CHECKING:
    from pyiceberg.table import Table

_CONFIGS: dict[str, type[SinkConfig] | type[SourceConfig]] = {
    "iceberg.sink": SinkConfig,
    "iceberg.source": SourceConfig,
}


def snapshots(args: argparse.Namespace) -> int:
    """Newest last; with the marker that a sink has left in them."""
    table = _open(args)
    refs: dict[int, list[str]] = {}
    for name, ref in table.metadata.refs.items():
        refs.setdefault(ref.snapshot_id, []).append(name)
    rows = []
    for snapshot in sorted(table.metadata.snapshots, key=lambda each: each.sequence_number or each.timestamp_ms):
        summary: dict[str, Any] = {}
        if snapshot.summary is not None:
            summary = {"operation": snapshot.summary.operation.value, **snapshot.summary.additional_properties}
        rows.append(
            (
                str(snapshot.snapshot_id),
                datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds"),
                summary.get("operation", ""),
                summary.get("added-records", "0"),
                summary.get("total-records", ""),
                summary.get("arroyo.job", ""),
                ", ".join(sorted(refs.get(snapshot.snapshot_id, []))),
            )
        )
    _show(args, ("snapshot", "time", "operation", "added", "rows", "job", "refs"), rows)
    return OK


def expire(args: argparse.Namespace) -> int:
    """Files that only removed snapshots have stay in the storage: `orphans` finds them."""
    table = _open(args)
    before = datetime.now(UTC) - timedelta(microseconds=args.older_than)
    kept = {ref.snapshot_id for ref in table.metadata.refs.values()}
    old = [
        snapshot.snapshot_id
        for snapshot in table.metadata.snapshots
        if snapshot.snapshot_id not in kept and snapshot.timestamp_ms < before.timestamp() * 1000
    ]
    if args.yes and old:
        with translated(f"cannot expire snapshots of {'.'.join(table.name())}"):
            table.maintenance.expire_snapshots().by_ids(old).commit()
    _show(args, ("snapshot",), [(str(each),) for each in old])
    if args.format != JSON:
        done = "removed" if args.yes else "would be removed; --yes does it"
        print(f"{len(old)} of {len(table.metadata.snapshots)} snapshots {done}")
    return OK


def orphans(args: argparse.Namespace) -> int:
    """Of attempts that did not count, of commits that were refused, and of snapshots that have expired."""
    table = _open(args)
    before = datetime.now(UTC) - timedelta(microseconds=args.older_than)
    with translated(f"cannot list the files of {'.'.join(table.name())}"):
        known = set(_known_files(table))
        found = [
            path
            for place in _places(table, args.place)
            for path, changed in list_files(table, place)
            if path not in known and changed is not None and changed.replace(tzinfo=changed.tzinfo or UTC) < before
        ]
        if args.yes:
            for path in found:
                table.io.delete(path)
    _show(args, ("file",), [(path,) for path in found])
    if args.format != JSON:
        done = "deleted" if args.yes else "would be deleted; --yes does it"
        print(f"{len(found)} files {done}")
    return OK


def _open(args: argparse.Namespace) -> Table:
    """The table of the node; raises `ConfigError`, and what planning raises."""
    plan = plan_file(args.pipeline, **planning(args)).plan
    nodes = {node.id: node for node in plan.nodes.values() if node.operator in _CONFIGS}
    if args.node not in nodes:
        raise ConfigError(f"{plan.job_id} has no Iceberg node {args.node!r} (it has: {', '.join(nodes) or 'none'})")
    node = nodes[args.node]
    config = _CONFIGS[node.operator].FromString(node.config)
    name: TableName = read_table_name(config.table)
    return check_catalog(config.catalog).load(name)


def _places(table: Table, own: Sequence[str]) -> list[str]:
    """The folders that files of the table are in; raises `ConfigError` for those that others may have.

    Whoever writes to the table says where these are. Without a word of whoever runs this, they are where tables have
    them.
    """
    provider = table.location_provider()
    usual = [f"{table.location().rstrip('/')}/{name}" for name in ("data", "metadata")]
    allowed = [f"{_plain(place)}/" for place in (*usual, *own)]
    places = sorted({provider.data_path.rstrip("/"), provider.metadata_path.rstrip("/")})
    for place in places:
        plain = f"{_plain(place)}/"
        if ".." in plain.split("/") or not plain.startswith(tuple(allowed)):
            raise ConfigError(
                f"{'.'.join(table.name())} says that its files are in {redact_url(place)}, and not below "
                f"{redact_url(table.location())}: others may have files there, and none are deleted. Where it is the "
                "table's alone, say so with --place",
                field="table",
            )
    return places


def _plain(place: str) -> str:
    """A place with one form for files of this host."""
    return place.removeprefix("file://").rstrip("/")


def _known_files(table: Table) -> Iterator[str]:
    """All that any snapshot refers to, and the metadata themselves."""
    metadata = table.metadata
    yield table.metadata_location
    yield from (entry.metadata_file for entry in metadata.metadata_log)
    for statistics in metadata.statistics:
        yield statistics.statistics_path
    seen = set()
    for snapshot in metadata.snapshots:
        yield snapshot.manifest_list
        for manifest in snapshot.manifests(table.io):
            yield manifest.manifest_path
            if manifest.manifest_path in seen:
                continue
            seen.add(manifest.manifest_path)
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                yield entry.data_file.file_path


def _show(args: argparse.Namespace, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if args.format == JSON:
        print(json.dumps([dict(zip(columns, row, strict=True)) for row in rows], indent=2))
    elif rows:
        print_rows(columns, rows)
