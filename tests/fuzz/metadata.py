"""Metadata of checkpoints, as somebody who can write to their storage may forge them.

The first byte of an input chooses which file it is. The job is that of the fixtures of the state format, so that data
files are there. Metadata of a checkpoint gets the right checksum: a forger can compute it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache

from arroyo_filesystem.confinement import check_files
from arroyo_filesystem.location import Location
from arroyo_filesystem.manifests import derive_manifest, encode_manifest
from arroyo_filesystem.staging import decode_files
from arroyo_jobs.checkpoints.verification import Verifier
from fsspec.implementations.local import LocalFileSystem
from google.protobuf.message import DecodeError

from arroyo_core.cli.formats import format_time
from arroyo_core.errors import ArroyoError
from arroyo_core.ids import TaskInfo
from arroyo_core.pipeline import Plan, plan_text
from arroyo_core.plugin import installed_plugins
from arroyo_core.proto.state_pb2 import CheckpointMetadata, CommittedMarker, GenerationClaim
from arroyo_core.runtime.carry import carried_of, restore_carried
from arroyo_core.runtime.event_log import read_epoch
from arroyo_core.runtime.heartbeats import Heartbeats
from arroyo_core.runtime.start import StartOptions, check_start
from arroyo_core.runtime.status import judge_life, read_status
from arroyo_core.runtime.stop import StopFile
from arroyo_core.state import ParquetBackend, paths
from arroyo_core.state.fork import ForkOrigin, forked_from, rewrite_checkpoint
from arroyo_core.state.inspection import finished_epoch, read_table, summarize_checkpoints, summarize_tables
from arroyo_core.state.seals import SealKey, Seals
from arroyo_core.udf.manifest import check_environment, decode_manifest

from .memory_storage import memory_storage
from .targets import ROOT

_FIXTURE = ROOT / "tests" / "unit" / "state" / "fixtures" / "format-1"
_JOB, _EPOCH, _GENERATION = "job", 7, 1
_KEY = SealKey(b"0123456789abcdef0123456789abcdef")
#: Tables of a checkpoint whose rows are read.
_MOST_TABLES = 8
_PIPELINE = """\
name: job
parallelism: 2
nodes:
  - {id: bids, operator: nexmark.source, config: {events: 100}}
  - {id: timed, operator: std.watermark, inputs: [bids], config: {max_lateness: 1s}}
  - id: op
    was: former
    operator: std.tumbling_window
    inputs: [timed]
    config: {size: 10s, keys: [auction], aggregates: [{function: count, as: bids}]}
  - {id: out, operator: std.blackhole, inputs: [op]}
"""


def run(data: bytes) -> None:
    if data:
        _KINDS[data[0] % len(_KINDS)](data[1:])


@cache
def _files() -> dict[str, bytes]:
    found = (path for path in _FIXTURE.rglob("*") if path.is_file())
    return {str(path.relative_to(_FIXTURE)): path.read_bytes() for path in found}


@cache
def _plan() -> Plan:
    return plan_text(_PIPELINE, plugins=installed_plugins(), environment={})


def _backend(path: str, data: bytes, seals: Seals | None = None) -> ParquetBackend:
    """The job of the fixture with one other file."""
    return ParquetBackend(memory_storage({**_files(), path: data}), _JOB, seals=seals or Seals())


def _checkpoint(data: bytes) -> None:
    """What everybody does who reads a checkpoint; nothing of it keeps the next from being tried."""
    try:
        forged = CheckpointMetadata.FromString(data)
    except DecodeError:
        return
    forged.job_id, forged.epoch = _JOB, _EPOCH
    path = paths.checkpoint_metadata(_JOB, _EPOCH)
    backend = _backend(path, Seals().seal(forged, path))
    loaded = backend.load_checkpoint_metadata(_JOB, _EPOCH)
    assert loaded == forged, "what was written is read as something else"
    sealed = Seals([_KEY])
    assert sealed.unseal(sealed.seal(loaded, path), CheckpointMetadata, path=path, name=path) == loaded
    for use in (_inspect, _read_tables, _verify, _start, _fork, _clean_up):
        with suppress(ArroyoError):
            use(backend, loaded)


def _inspect(backend: ParquetBackend, loaded: CheckpointMetadata) -> None:
    list(summarize_checkpoints(backend))
    finished_epoch(backend, backend.read_facts())
    summarize_tables(loaded)


def _read_tables(backend: ParquetBackend, loaded: CheckpointMetadata) -> None:
    tables = [(each.operator_metadata.operator_id, name) for each in loaded.operators for name in each.table_configs]
    for operator_id, name in tables[:_MOST_TABLES]:
        with suppress(ArroyoError):
            read_table(backend.storage, loaded, operator_id, name).to_pylist()


def _verify(backend: ParquetBackend, loaded: CheckpointMetadata) -> None:
    verdict = Verifier(backend).verify(_EPOCH)
    assert all(isinstance(problem, str) for problem in verdict.problems)


def _start(backend: ParquetBackend, loaded: CheckpointMetadata) -> None:
    start = check_start(backend, _plan(), installed_plugins(), StartOptions(allow_drop=True))
    if start.checkpoint is not None:
        restore_carried(_plan(), carried_of(start.checkpoint))


def _fork(backend: ParquetBackend, loaded: CheckpointMetadata) -> None:
    forked_from(loaded)
    rewrite_checkpoint(loaded, job_id="other", origin=ForkOrigin(url=backend.storage.url, job=_JOB, epoch=_EPOCH))


def _clean_up(backend: ParquetBackend, loaded: CheckpointMetadata) -> None:
    backend.plan_cleanup(_EPOCH)


def _envelope(data: bytes) -> None:
    path = paths.checkpoint_metadata(_JOB, _EPOCH)
    for seals in (Seals(), Seals([_KEY])):
        with suppress(ArroyoError):
            _backend(path, data, seals).load_checkpoint_metadata(_JOB, _EPOCH)


def _claim(data: bytes) -> None:
    path = paths.generation_claim(_JOB, _GENERATION)
    for seals in (Seals(), Seals([_KEY])):
        with suppress(ArroyoError):
            assert isinstance(_backend(path, data, seals).read_claim(_GENERATION), GenerationClaim)
        with suppress(ArroyoError):
            assert _backend(path, data, seals).claim_generation() > _GENERATION, "a generation is claimed twice"


def _marker(data: bytes) -> None:
    seals, checkpoint = Seals([_KEY]), paths.checkpoint_metadata(_JOB, _EPOCH)
    loaded = ParquetBackend(memory_storage(_files()), _JOB, seals=Seals()).load_checkpoint_metadata(_JOB, _EPOCH)
    loaded.needs_commit = True
    backend = _backend(checkpoint, seals.seal(loaded, checkpoint), seals)
    path = paths.committed_marker(_JOB, _EPOCH)
    backend.storage.write(path, data)
    with suppress(ArroyoError):
        backend.resolve_latest()
    marker = CommittedMarker(epoch=_EPOCH, attempt_id=loaded.attempt_id)
    backend.storage.write(path, seals.seal(marker, path))
    assert backend.resolve_latest().checkpoint == loaded


def _status(data: bytes) -> None:
    found = read_status(memory_storage({paths.driver_status(_JOB, 1): data}), _JOB, 1)
    if found is not None:
        judge_life(found, now_us=0)
        format_time(found.started_us)


def _heartbeat(data: bytes) -> None:
    for beat in Heartbeats(memory_storage({paths.heartbeat(_JOB, 1, 0, 0): data}), _JOB, 1).read(1):
        str(beat)


def _event_log(data: bytes) -> None:
    checkpoint = CheckpointMetadata(job_id=_JOB, epoch=_EPOCH, generation=1)
    read_epoch(memory_storage({paths.event_log(_JOB, _EPOCH, 1): data}), checkpoint)


def _stop(data: bytes) -> None:
    path = paths.stop_request(_JOB, 1)
    StopFile(memory_storage({path: data}), path).read()


def _commit(data: bytes) -> None:
    """Commit data of `filesystem.sink`, and the manifest that they become."""
    task = TaskInfo(job_id=_JOB, operator_id="op", operator_name="sink", task_index=0, parallelism=1)
    files = decode_files(data)
    check_files(Location(LocalFileSystem(), str(_FIXTURE), str(_FIXTURE)), files, task)
    encode_manifest(derive_manifest(files, task, _EPOCH, state_id="0a"))


def _bundle(data: bytes) -> None:
    manifest = decode_manifest(data, what="the bundle")
    assert decode_manifest(manifest.encode(), what="the same") == manifest
    check_environment(manifest, what="the bundle")


_KINDS: Sequence[Callable[[bytes], None]] = (
    _checkpoint,
    _envelope,
    _claim,
    _marker,
    _status,
    _heartbeat,
    _event_log,
    _stop,
    _commit,
    _bundle,
)
