"""Files of dead letters, and claims of replays, as somebody who can write to their folder may forge them.

The first byte of an input chooses what it is: lines of a source, a file of Parquet, a claim, or a file in a folder
whose name holds a column. All of it is listed, shown and selected as by `arroyo dlq`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout, suppress
from functools import cache
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
from arroyo_dlq import command
from arroyo_dlq.claims import folder_of, put_claim, read_replays
from arroyo_dlq.letters import find_letters, read_rows
from arroyo_dlq.replay import Replayer, Selection
from arroyo_dlq.rewriting import Route

from arroyo_core.api.dead_letters import PROVENANCE
from arroyo_core.cli.commands import Commands, RootParser
from arroyo_core.errors import ArroyoError
from arroyo_core.pipeline import Plan, plan_text
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.results import JobResult
from arroyo_core.state import StorageProvider

from .memory_storage import memory_storage

_LETTERS = "part-00001-000-0-00000000.parquet"
_LINES = "bad-00001-000-0-0.jsonl"
_CLAIM = "_replays/00001/claim.json"
_PIPELINE = """\
name: shares
nodes:
  - {id: numbers, operator: impulse.source, config: {count: 10}}
  - {id: shared, operator: std.project, inputs: [numbers], config: {expressions: {n: "12 / counter"}}}
  - {id: out, operator: std.blackhole, inputs: [shared]}
"""


def run(data: bytes) -> None:
    if data:
        _KINDS[data[0] % len(_KINDS)](data[1:])


@cache
def good_letters() -> bytes:
    """A file with three letters of the node `shared`."""
    columns = {field.name: pa.nulls(3, field.type) for field in PROVENANCE}
    texts = {"_error": "by zero", "_error_pipeline": "shares", "_error_node": "shared"}
    columns |= {name: pa.array([text] * 3, PROVENANCE.field(name).type) for name, text in texts.items()}
    stream = io.BytesIO()
    rows = {"counter": pa.array([0, 1, 2], pa.uint64()), **columns}
    pq.write_table(pa.table(rows), stream, compression="none")
    return stream.getvalue()


def _lines(data: bytes) -> None:
    _use({_LINES: data})


def _letters(data: bytes) -> None:
    _use({_LETTERS: data})


def _claim(data: bytes) -> None:
    storage = memory_storage({_LETTERS: good_letters(), _CLAIM: data})
    _use_storage(storage)
    claim = read_replays(storage).claims[1]
    again = memory_storage({})
    assert put_claim(again, claim), "a claim cannot be written again"
    assert read_replays(again).claims == {1: claim}, "a claim is read as another"
    assert folder_of(claim) == "_replays/00001"


def _folders(data: bytes) -> None:
    """The name of a folder, up to the first line end, in which the letters are; then lines of a claim of them."""
    name, _, claim = data.partition(b"\n")
    folder = name.decode("utf-8", errors="surrogateescape").replace("\0", "")
    _use({f"{folder}/{_LETTERS}": good_letters(), _CLAIM: claim})


_KINDS: Sequence[Callable[[bytes], None]] = (_lines, _letters, _claim, _folders)


def _use(files: dict[str, bytes]) -> None:
    _use_storage(memory_storage(files))


def _use_storage(storage: StorageProvider) -> None:
    """What the commands do; nothing of it keeps the next from being tried."""
    for use in (_read, _list, _show, _select):
        with suppress(ArroyoError):
            use(storage)


def _read(storage: StorageProvider) -> None:
    for file in find_letters(storage).files:
        rows = read_rows(storage, file)
        assert rows.num_rows == file.letters, "letters have no rows"
        places = read_replays(storage).claimed(file.path, file.letters)
        assert all(0 <= place < file.letters for place in places), "letters are claimed that are not there"


def _list(storage: StorageProvider) -> None:
    _run(storage, "ls")


def _show(storage: StorageProvider) -> None:
    _run(storage, "show", "--all")


def _run(storage: StorageProvider, *arguments: str) -> None:
    """A command, in both of its formats."""
    json.loads(_printed(storage, *arguments, "--format", "json"))
    assert "\x1b" not in _printed(storage, *arguments), "a letter commands the terminal"


def _printed(storage: StorageProvider, action: str, *options: str) -> str:
    args = _parser().parse_args(["dlq", action, storage.url, *options])
    printed = io.StringIO()
    with mock.patch.object(command, "get_storage_provider", return_value=storage), redirect_stdout(printed):
        args.command(args)
    return printed.getvalue()


@cache
def _parser() -> RootParser:
    root = RootParser(prog="arroyo")
    command.add_command(Commands(root))
    return root


def _select(storage: StorageProvider) -> None:
    """As `arroyo dlq replay --dry-run`."""
    plan, plugins = _plan(), installed_plugins()
    replayer = Replayer(storage=storage, plan=plan, plugins=plugins, run=_never)
    selection = Selection(pipeline="shares")
    for claim in replayer.broken_off(selection):
        with suppress(ArroyoError):
            replayer.check_repeated(claim, into=None, until=None, sink=None)
    for node, files in replayer.open_letters(selection).items():
        replayer.check(Route(into=node), files)


@cache
def _plan() -> Plan:
    return plan_text(_PIPELINE, plugins=installed_plugins(), environment={})


def _never(*_: object) -> JobResult:
    raise AssertionError("a replay runs")
