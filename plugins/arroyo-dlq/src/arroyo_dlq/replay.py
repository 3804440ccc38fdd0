"""Replay: the rows of dead letters through a fixed pipeline, each once, whatever dies meanwhile.

    claim the letters (put-if-absent) -> store their rows (put-if-absent) -> run a job over them -> say that it is done

The job is an ordinary one, with checkpoints of its own beside the claim: what its sinks commit is exactly once. A
replay that was interrupted anywhere is gone on with by the next one: the claim says which letters it has, rows that
are stored are never stored again, the job goes on from its last checkpoint, and one that had ended has nothing left to
do. A second driver of the same replay fences the first, as for any job.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.urls import absolute_url
from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.runtime.results import JobResult
from arroyo_core.runtime.start import StartOptions
from arroyo_core.state import StorageProvider
from arroyo_core.state.failures import MissingFileError
from arroyo_core.state.storage import StoredFile
from arroyo_dlq.claims import (
    Claim,
    ClaimedFile,
    ReplayError,
    Replays,
    folder_of,
    put_claim,
    put_done,
    read_replays,
    to_ranges,
)
from arroyo_dlq.letters import (
    LetterFile,
    find_letters,
    is_text_file,
    open_letter_file,
    read_rows,
)
from arroyo_dlq.rewriting import ROWS, ReplayPlan, Route, plan_replay

#: How often another replay may be faster to a number before this one gives up.
CLAIM_ATTEMPTS = 100

#: Runs a plan to its end, from wherever its checkpoints say that it stands.
Runner = Callable[[Plan, StartOptions], JobResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which letters are meant: all of one pipeline, or fewer."""

    pipeline: str
    node: str | None = None
    #: A part of the error.
    error: str | None = None
    limit: int | None = None

    def places(self, file: LetterFile) -> list[int]:
        """The letters of a file that are meant, by place."""
        return pc.indices_nonzero(self._mask(file.provenance)).to_pylist()  # type: ignore[no-any-return]

    def _mask(self, provenance: pa.Table) -> pa.ChunkedArray:
        mask = pc.equal(provenance.column("_error_pipeline"), self.pipeline)
        if self.node is not None:
            mask = pc.and_(mask, pc.equal(provenance.column("_error_node"), self.node))
        if self.error is not None:
            mask = pc.and_(mask, pc.match_substring(provenance.column("_error"), self.error))
        return pc.fill_null(mask, False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What a finished replay came to."""

    claim: Claim
    result: JobResult
    is_resumed: bool
    #: What a person must know about the sinks.
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayer:
    """Replays letters of one folder through one pipeline."""

    storage: StorageProvider
    plan: Plan
    plugins: PluginSet
    run: Runner = field(repr=False)
    now_us: Callable[[], int] = lambda: time.time_ns() // 1000

    def open_letters(self, selection: Selection) -> dict[str, list[ClaimedFile]]:
        """The selected letters that no replay has, by node; lines of sources only where their node is named."""
        return _select(self.storage, read_replays(self.storage), selection)

    def replay(
        self, selection: Selection, *, into: str | None = None, until: str | None = None, sink: str | None = None
    ) -> Iterator[Replay]:
        """Go on with replays that were interrupted, then replay what is selected and open; one node after the other.

        The rest is that of `Route`; rows go `into` the node that they failed in, by default. What was interrupted must
        be repeated with the same. Raises `ReplayError` before a letter is claimed where a replay cannot be right.
        """
        found = self.open_letters(selection)
        routes = {node: Route(into=into or node, until=until, sink=sink) for node in found}
        for node, route in routes.items():
            self.check(route, found[node])
        resumed = self.broken_off(selection)
        chosen = [self.check_repeated(claim, into=into, until=until, sink=sink) for claim in resumed]
        for claim, route in zip(resumed, chosen, strict=True):
            yield self._finish(claim, route, is_resumed=True)
        for node, route in routes.items():
            begun = self._begin(selection.pipeline, node, found[node], route)
            if begun is not None:
                yield self._finish(begun, route, is_resumed=False)

    def broken_off(self, selection: Selection) -> list[Claim]:
        """Replays of the selected nodes that did not come to their end."""
        return [
            claim
            for claim in read_replays(self.storage).broken_off
            if claim.pipeline == selection.pipeline and selection.node in (None, claim.node)
        ]

    def check_repeated(self, claim: Claim, *, into: str | None, until: str | None, sink: str | None) -> Route:
        """The route of a replay that was interrupted; raises `ReplayError` unless it is the one that is asked for.

        A claim is a file beside the letters: whoever can write there must not choose where rows go.
        """
        begun = {"into": claim.into if claim.into != claim.node else None, "until": claim.until, "sink": claim.sink}
        asked = {"into": into if into != claim.node else None, "until": until, "sink": sink}
        if any(_spelled(name, begun[name]) != _spelled(name, asked[name]) for name in begun):
            settings = "".join(f" --{name} {value}" for name, value in begun.items() if value is not None)
            settings = settings or " no --into, --until and --sink"
            raise ReplayError(
                f"replay {claim.number} of {claim.node!r} was begun with{settings}, and interrupted: repeat "
                "the command with exactly that to go on with it. If nobody of yours began it, remove "
                f"{self.storage.url}/{folder_of(claim)}"
            )
        return Route(into=claim.into, until=until, sink=sink)

    def check(self, route: Route, files: Sequence[ClaimedFile]) -> ReplayPlan:
        """Raise `ReplayError` if the letters cannot take this route; reads only."""
        replay = plan_replay(self.plan, self.plugins, route)
        for file in files:
            _rows(self.storage, file, replay.stream, node=route.into)
        return replay

    def _check_letters(self, claim: Claim) -> None:
        """Raise `ReplayError` if a claim has letters that are not there, or not of its node."""
        for claimed in claim.files:
            file = _open_claimed(self.storage, claimed)
            found = file.provenance.select(["_error_pipeline", "_error_node"]).take(claimed.places(file.letters))
            for letter in found.to_pylist():
                if (letter["_error_pipeline"], letter["_error_node"]) != (claim.pipeline, claim.node):
                    raise ReplayError(
                        f"replay {claim.number} has a letter of {self.storage.url}/{claimed.path} that is not of node "
                        f"{claim.node!r} of pipeline {claim.pipeline!r}: nothing is replayed"
                    )

    def _begin(self, pipeline: str, node: str, files: Sequence[ClaimedFile], route: Route) -> Claim | None:
        """Claim letters of a node, but for those that another replay has by now; None if it has them all."""
        for _ in range(CLAIM_ATTEMPTS):
            replays = read_replays(self.storage)
            left = [
                open_part
                for file in files
                if (open_part := _without(file, replays.claimed(file.path, file.end))).ranges
            ]
            if not left:
                return None
            claim = Claim(
                number=replays.next_number,
                pipeline=pipeline,
                node=node,
                into=route.into,
                time_us=self.now_us(),
                files=left,
                until=route.until,
                sink=route.sink,
            )
            if put_claim(self.storage, claim):
                return claim
        raise ReplayError(f"{CLAIM_ATTEMPTS} times another replay of {self.storage.url} was faster: try again")

    def _finish(self, claim: Claim, route: Route, *, is_resumed: bool) -> Replay:
        """Everything after the claim; may run again after a crash at any point of itself."""
        replay = plan_replay(self.plan, self.plugins, route)
        folder = folder_of(claim)
        if is_resumed:
            self._check_letters(claim)
        for number, file in enumerate(claim.files):
            path = f"{folder}/{ROWS}/part-{number:05}.parquet"
            if not self.storage.exists(path):
                self._store(path, _rows(self.storage, file, replay.stream, node=claim.into))
        for empty, stream in replay.empty.items():
            self._store(f"{folder}/{empty}/part-00000.parquet", stream.schema.empty_table())
        plan = replay.bind(self.plan, self.plugins, url=f"{self.storage.url}/{folder}")
        # Operators of a replay keep nothing that other code or settings could misread.
        accepted = frozenset(pin.key for pin in plan.udfs)
        allowed = frozenset(node.id for node in plan.written_nodes())
        result = self.run(plan, StartOptions(accept_udf_changes=accepted, allow_changes=allowed))
        if not result.is_finished:
            raise ReplayError(f"replay {claim.number} was stopped: the same command goes on with it")
        put_done(self.storage, claim, time_us=self.now_us())
        return Replay(claim=claim, result=result, is_resumed=is_resumed, warnings=replay.warnings)

    def _store(self, path: str, rows: pa.Table) -> None:
        """Never over a file that is there: the job may have begun to read it."""
        out = pa.BufferOutputStream()
        pq.write_table(rows, out, compression="zstd")
        self.storage.put_if_absent(path, out.getvalue().to_pybytes())


def _select(storage: StorageProvider, replays: Replays, selection: Selection) -> dict[str, list[ClaimedFile]]:
    found: dict[str, list[ClaimedFile]] = {}
    left = selection.limit
    for file in find_letters(storage).files:
        if file.is_text and selection.node is None:
            continue
        nodes = file.provenance.column("_error_node").to_pylist()
        claimed = replays.claimed(file.path, file.letters)
        places = [place for place in selection.places(file) if place not in claimed]
        if left is not None:
            places = places[:left]
            left -= len(places)
        for node in dict.fromkeys(nodes[place] for place in places):
            ranges = to_ranges([place for place in places if nodes[place] == node])
            found.setdefault(node, []).append(ClaimedFile(path=file.path, size_bytes=file.size_bytes, ranges=ranges))
    return found


def _without(file: ClaimedFile, places: frozenset[int]) -> ClaimedFile:
    ranges = to_ranges([place for place in file.places(file.end) if place not in places])
    return ClaimedFile(path=file.path, size_bytes=file.size_bytes, ranges=ranges)


def _rows(storage: StorageProvider, claimed: ClaimedFile, stream: ArroyoSchema, *, node: str) -> pa.Table:
    """The rows of claimed letters as the input of a node; raises `ReplayError` where they do not fit."""
    place = f"{storage.url}/{claimed.path}"
    if is_text_file(claimed.path):
        raise ReplayError(f"{place} has lines that never became rows: there is nothing that {node!r} could be given")
    file = _open_claimed(storage, claimed)
    schema = file.row_schema
    if schema is None:
        raise ReplayError(f"{place} holds no dead letters any more")
    missing = [name for name in stream.names if name not in schema.names]
    if missing:
        raise ReplayError(
            f"the rows in {place} have no column {missing[0]!r}, which {node!r} reads now: they failed before the "
            "pipeline had it. Give them to an earlier node with --into NODE, or take the column out of the input"
        )
    misfit = f"the rows in {place} do not fit the input of {node!r}"
    for column in stream.schema:
        found = schema.field(column.name).type
        # Nothing says in which unit such a number counts, but a cast would not mind.
        if pa.types.is_temporal(column.type) and pa.types.is_integer(found):
            raise ReplayError(f"{misfit}: column {column.name!r} is {found}, not {column.type}")
    rows = read_rows(storage, file).take(pa.array(claimed.places(file.letters), pa.int64()))
    try:
        return rows.select(stream.names).cast(stream.schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, ValueError) as error:
        raise ReplayError(f"{misfit}: {error}") from error


def _open_claimed(storage: StorageProvider, claimed: ClaimedFile) -> LetterFile:
    """The file that a claim has letters of; raises `ReplayError` unless it is the one that was claimed."""
    place = f"{storage.url}/{claimed.path}"
    try:
        size = storage.size(claimed.path)
    except MissingFileError as error:
        raise ReplayError(f"{place} is gone, and a replay that was interrupted needs it: put it back") from error
    if size != claimed.size_bytes:
        raise ReplayError(f"{place} is not the file that the replay began with: it has {size} bytes")
    file = open_letter_file(storage, StoredFile(claimed.path, size))
    if file is None:
        raise ReplayError(f"{place} holds no dead letters any more")
    if claimed.end > file.letters:
        raise ReplayError(f"{place} has {file.letters} letters, and the claim of a replay has some up to {claimed.end}")
    return file


def _spelled(name: str, value: str | None) -> str | None:
    """One spelling of a setting: a path means the same however it is written."""
    return absolute_url(value).rstrip("/") if name == "sink" and value else value
