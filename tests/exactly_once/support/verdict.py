"""What a reader of the output sees, what the state tables hold, and what both must be."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import pyarrow.parquet as pq
from arroyo_filesystem.held_rows import HELD_TABLE

from arroyo_core.state import ParquetBackend, get_storage_provider, inspection
from arroyo_core.state.table_types import uses_two_phase_commit

from .laboratory import JOB

Rows = Counter[tuple[object, ...]]
#: By epoch, operator and table.
Tables = dict[str, Rows]

_EPOCH = re.compile(r"(?:part|bad)-(\d+)-")


@dataclass(frozen=True)
class Truth:
    """What a run without failures gives."""

    output: Rows
    bad_lines: Rows
    tables: Tables


def is_visible(name: str) -> bool:
    """Whether readers of a folder look at the file: all of them skip names that begin with `_` or `.`."""
    return not any(part.startswith(("_", ".")) for part in name.split("/"))


@lru_cache(maxsize=4096)
def _parse(name: str, data: bytes) -> tuple[tuple[object, ...], ...]:
    if name.endswith(".parquet"):
        return tuple(tuple(row.values()) for row in pq.read_table(io.BytesIO(data)).to_pylist())
    rows = [json.loads(line) for line in data.splitlines()]
    # Where a folder lies is not a part of what was wrong with a line.
    return tuple((row["file"].rpartition("/")[2], row["line"], row["text"]) for row in rows)


def visible_rows(files: Mapping[str, bytes], folder: str) -> Rows:
    """The rows of all visible files of a folder; every one must be whole."""
    rows: Rows = Counter()
    for name, data in files.items():
        if name.startswith(f"{folder}/") and is_visible(name):
            rows.update(_parse(name, data))
    return rows


def visible_epochs(files: Mapping[str, bytes], folder: str) -> set[int]:
    """The epochs whose files readers see."""
    names = [name for name in files if name.startswith(f"{folder}/") and is_visible(name)]
    return {int(found.group(1)) for name in names if (found := _EPOCH.search(name))}


def manifests(files: Mapping[str, bytes], folder: str, *, may_tear: bool = False) -> dict[str, dict[int, set[str]]]:
    """By ending, `json` or `begun`, the files of each epoch that a manifest of the folder lists.

    With `may_tear` a manifest may be half written: no store does so to an object, but one of the tests' disks does.
    """
    found: dict[str, dict[int, set[str]]] = {"json": {}, "begun": {}}
    for name, data in files.items():
        if not name.startswith(f"{folder}/_committed/"):
            continue
        try:
            manifest = json.loads(data)
        except ValueError:
            assert may_tear, f"{name} is not whole"
            continue
        ending = name.rpartition(".")[2]
        assert manifest["complete"] is (ending == "json"), name
        found[ending][manifest["epoch"]] = {f"{folder}/{file['path']}" for file in manifest["files"]}
        sizes = {f"{folder}/{file['path']}": file["bytes"] for file in manifest["files"]}
        wrong = {path for path, size in sizes.items() if path in files and len(files[path]) != size}
        assert not wrong, f"{name} tells another size than files have: {wrong}"
    return found


def files_by_epoch(files: Mapping[str, bytes], folder: str) -> dict[int, set[str]]:
    """The visible files of a folder."""
    found: dict[int, set[str]] = {}
    for name in files:
        if name.startswith(f"{folder}/") and is_visible(name) and (match := _EPOCH.search(name)):
            found.setdefault(int(match.group(1)), set()).add(name)
    return found


def check_manifests(files: Mapping[str, bytes], folder: str, *, may_tear: bool = False) -> None:
    """At any moment: who reads by manifests sees whole epochs, and files of other epochs are known to be of such."""
    listed, visible = manifests(files, folder, may_tear=may_tear), files_by_epoch(files, folder)
    for epoch, names in listed["json"].items():
        assert names == visible.get(epoch), f"epoch {epoch} is complete, and has other files than its manifest"
    for epoch, names in visible.items():
        known = listed["json"].get(epoch) or listed["begun"].get(epoch)
        assert known is not None or may_tear, f"epoch {epoch} has files, and was not begun"
        assert known is None or names <= known, f"epoch {epoch} has files that its manifest does not list"


def published_epochs(files: Mapping[str, bytes], state: str) -> int:
    """The last published epoch, by the files alone."""
    found = re.compile(rf"{re.escape(state)}/{JOB}/checkpoints/(\d+)/checkpoint\.metadata")
    return max((int(match.group(1)) for name in files if (match := found.fullmatch(name))), default=0)


def table_rows(url: str) -> Tables:
    """Every table of the job's two latest checkpoints, but those that hold random names for a commit."""
    storage = get_storage_provider(url)
    backend = ParquetBackend(storage, JOB)
    epochs = backend.list_epochs()[-2:]
    found: Tables = {}
    for epoch in epochs:
        metadata = backend.load_checkpoint_metadata(JOB, epoch)
        assert metadata.is_final is (epoch == epochs[-1])
        for operator in metadata.operators:
            operator_id = operator.operator_metadata.operator_id
            for name, config in operator.table_configs.items():
                # Parts that a sink holds have random names, too; what is in them is seen in the end.
                if not uses_two_phase_commit(config) and name != HELD_TABLE:
                    rows = inspection.read_table(storage, metadata, operator_id, name).to_pylist()
                    found[f"{epoch} {operator_id}.{name}"] = Counter(tuple(row.values()) for row in rows)
    return found


def placeless(tables: Tables) -> Tables:
    """The tables without what a source notes about where its files lie."""

    def is_place(row: tuple[object, ...]) -> bool:
        return str(row[0]).startswith(('"plan', '"seen-'))

    return {
        name: Counter(
            {
                row: count
                for row, count in rows.items()
                if not (name.endswith((" files.f", " files.s")) and is_place(row))
            }
        )
        for name, rows in tables.items()
    }


def check_reader(files: Mapping[str, bytes], root: str, truth: Truth, *, may_tear: bool = False) -> None:
    """At any moment: every visible file is whole, true, and of a published epoch."""
    check_manifests(files, f"{root}/out", may_tear=may_tear)
    published = published_epochs(files, f"{root}/state")
    for folder, rows in (("out", truth.output), ("bad", truth.bad_lines)):
        seen = visible_rows(files, f"{root}/{folder}")
        assert seen <= rows, f"{folder} shows rows that are not in the result: {seen - rows}"
        newest = max(visible_epochs(files, f"{root}/{folder}"), default=0)
        assert newest <= published, f"{folder} shows epoch {newest}, and only {published} is published"


def check_result(files: Mapping[str, bytes], root: str, tables: Tables, truth: Truth, *, is_tidy: bool = True) -> None:
    """At the end: output and state are those of a run without failures, and with `is_tidy` nothing is left staged."""
    _check_equal("out", visible_rows(files, f"{root}/out"), truth.output)
    _check_equal("bad", visible_rows(files, f"{root}/bad"), truth.bad_lines)
    assert set(tables) == set(truth.tables), f"other tables than expected: {sorted(tables)}"
    for name, rows in tables.items():
        _check_equal(f"table {name}", rows, truth.tables[name])
    check_manifests(files, f"{root}/out")
    complete = manifests(files, f"{root}/out")["json"]
    assert complete == files_by_epoch(files, f"{root}/out"), f"epochs are not complete: {sorted(complete)}"
    left = [name for name in files if "/_arroyo_staging/" in name or name.endswith(".begun")]
    assert not is_tidy or not left, f"files are left staged, or commits begun: {left}"


def _check_equal(name: str, found: Rows, expected: Rows) -> None:
    """Says what differs: these checks also run where no test framework explains them."""
    assert found == expected, f"{name} has too many {dict(found - expected)} and lacks {dict(expected - found)}"
