"""Frames of the exchange: what a receiver makes of them, and the driver of the reports among them.

An input is a row of frames, each a head as `_HEAD` has it and a payload. They go through an Arrow batch as through
Spark, to the second wave of a real plan; its reports and those among the frames go to the driver.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import cache

import pyarrow as pa

from arroyo_core import errors
from arroyo_core.api import SystemClock
from arroyo_core.errors import ExchangeError
from arroyo_core.pipeline import Plan, plan_text
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.acceptance import accept
from arroyo_core.runtime.carry import carried_state, restore_carried
from arroyo_core.runtime.context import Budget
from arroyo_core.runtime.exchange import decode_watermark, encode_watermark
from arroyo_core.runtime.frames import Frame, FrameKind, decode_batch, encode_batch
from arroyo_core.runtime.local import reports_of
from arroyo_core.runtime.request import EpochRequest, TaskEnvironment
from arroyo_core.runtime.wave import run_wave
from arroyo_core.spark.frame_batches import FRAME_SCHEMA, frames_of, frames_to_batch

#: Target, chain, input, sender, attempt, seq, kind, and the length of the payload.
_HEAD = struct.Struct("<bbbbbbbH")
_MOST_FRAMES = 64
_EPOCH = 1
_PIPELINE = """\
name: job
nodes:
  - {id: numbers, operator: impulse.source, config: {count: 10}}
  - id: texts
    operator: std.project
    inputs: [numbers]
    config: {expressions: {n: counter, s: "cast(counter as varchar)"}}
  - {id: out, operator: std.blackhole, inputs: [texts], parallelism: 2}
"""


def run(data: bytes) -> None:
    batch = _batch(list(_rows(data)))
    frames = list(frames_of(batch))
    assert frames_to_batch(frames).equals(batch), "frames are not the rows that they were made of"
    for frame in frames:
        _decode(frame)
    _drive(_receive(frames))


def pack(frame: Frame) -> bytes:
    """The part of an input that stands for a frame."""
    numbers = (frame.target, frame.chain, frame.input, frame.sender, frame.attempt, frame.seq, frame.kind)
    return bytes(_HEAD.pack(*numbers, frame.payload.size) + frame.payload.to_pybytes())


@cache
def plan() -> Plan:
    return plan_text(_PIPELINE, plugins=installed_plugins(), environment={})


def _rows(data: bytes) -> Iterator[tuple[int | bytes, ...]]:
    place = 0
    for _ in range(_MOST_FRAMES):
        if place + _HEAD.size > len(data):
            return
        *numbers, length = _HEAD.unpack_from(data, place)
        place += _HEAD.size
        yield (*numbers, data[place : place + length])
        place += length


def _batch(rows: Sequence[tuple[int | bytes, ...]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(FRAME_SCHEMA)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, FRAME_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=FRAME_SCHEMA)


def _decode(frame: Frame) -> None:
    """What can be decoded is encoded to the same; of values only those are looked at that can be values."""
    schema = plan().nodes["out"].input_schemas[0].schema
    try:
        if frame.kind is FrameKind.WATERMARK:
            assert encode_watermark(decode_watermark(frame.payload)).equals(frame.payload)
        elif frame.kind is FrameKind.DATA:
            batch = decode_batch(frame.payload, schema)
            batch.validate()
            if _is_valid(batch):
                again = decode_batch(encode_batch(batch), schema)
                assert str(again.to_pylist()) == str(batch.to_pylist()), "a batch is decoded as another"
    except ExchangeError:
        return


def _is_valid(batch: pa.RecordBatch) -> bool:
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _receive(frames: Sequence[Frame]) -> list[Frame]:
    """What comes of the frames in the second wave, which lets those for others pass; its errors are ours."""
    request = EpochRequest(
        epoch=_EPOCH, min_epoch=1, timestamp_us=0, budget=Budget(), storage_url="memory://fuzz", generation=1
    )
    environment = TaskEnvironment(partition=0, attempt=1, plugins=installed_plugins(), clock=SystemClock())
    sent = list(run_wave(plan(), 1, request, environment, frames))
    passed = {id(frame) for frame in frames}
    for report in reports_of([frame for frame in sent if id(frame) not in passed]):
        if report.HasField("error"):
            assert hasattr(errors, report.error.kind), f"{report.error.kind}: {report.error.traceback}"
    return sent


def _drive(frames: Sequence[Frame]) -> None:
    reports = reports_of(frames)
    accept(plan(), _EPOCH, reports)
    restore_carried(plan(), carried_state(reports))
