"""What went along the channels of an epoch, as both of their ends report it; compared as matrices.

An edge between two waves has a channel from each subtask that sends to each that receives. Each report has a row of
numbers for an edge, so that nothing has to be done for a single channel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt

from arroyo_core.errors import ExchangeError
from arroyo_core.pipeline.plan import Chain, Edge, Routing
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.exchange import Inbox
from arroyo_core.runtime.watermarks import Channel

_FRAMES = np.dtype("<u4")
_ATTEMPTS = np.dtype("<i8")

Matrix = npt.NDArray[np.integer]


def sent_frames(counts: Mapping[int, int], *, chain: int, input: int) -> pb.SentFrames:
    """The report of `EdgeSender.finish`, whose targets follow each other."""
    return pb.SentFrames(
        chain=chain,
        input=input,
        first_target=min(counts),
        frames=_row([counts[key] for key in sorted(counts)], _FRAMES),
    )


def received_frames(inboxes: Mapping[Channel, Inbox]) -> list[pb.ReceivedFrames]:
    """The report of a receiver: one for each input that comes through the exchange."""
    found = []
    for number, grouped in groupby(sorted(inboxes), key=lambda channel: channel[0]):
        channels = list(grouped)
        found.append(
            pb.ReceivedFrames(
                input=number,
                first_sender=channels[0][1],
                attempts=_row([inboxes[channel].attempt for channel in channels], _ATTEMPTS),
                frames=_row([inboxes[channel].frames for channel in channels], _FRAMES),
            )
        )
    return found


def check_edge(
    edge: Edge, source: Chain, target: Chain, senders: Sequence[pb.ChainReport], receivers: Sequence[pb.ChainReport]
) -> None:
    """Raises `ExchangeError` unless every receiver consumed exactly what the reporting senders sent along an edge.

    `senders` and `receivers` are the reports of the two chains, by subtask.
    """
    is_forward = edge.routing is Routing.FORWARD
    targets, sources = (1, 1) if is_forward else (target.parallelism, source.parallelism)
    sent = _matrix([_sent(report, edge, target) for report in senders], _FRAMES, targets)
    received = [_received(report, edge) for report in receivers]
    frames = _matrix([item.frames for item in received], _FRAMES, sources)
    attempts = _matrix([item.attempts for item in received], _ATTEMPTS, sources)
    if sent is None or frames is None or attempts is None:
        raise ExchangeError(
            f"the reports of chains {source.id} and {target.id} do not have one number for each channel"
        )
    expected = np.array([report.attempt for report in senders], dtype=np.int64)
    differ = (frames != (sent if is_forward else sent.T)) | (
        attempts != (expected[:, None] if is_forward else expected)
    )
    if differ.any():
        to, place = map(int, np.argwhere(differ)[0])
        sender = to if is_forward else place
        reported = int(sent[sender, 0 if is_forward else to])
        raise ExchangeError(
            f"chain {target.id}, subtask {to} consumed {frames[to, place]} frames of attempt {attempts[to, place]} of "
            f"chain {source.id}, subtask {sender}, which reported {reported} frames of attempt {expected[sender]}"
        )


def _sent(report: pb.ChainReport, edge: Edge, target: Chain) -> bytes:
    first = report.subtask if edge.routing is Routing.FORWARD else 0
    for item in report.sent:
        if (item.chain, item.input, item.first_target) == (target.id, edge.input, first):
            return item.frames
    return b""


def _received(report: pb.ChainReport, edge: Edge) -> pb.ReceivedFrames:
    first = report.subtask if edge.routing is Routing.FORWARD else 0
    for item in report.received:
        if (item.input, item.first_sender) == (edge.input, first):
            return item
    return pb.ReceivedFrames()


def _row(numbers: Sequence[int], kind: np.dtype[np.integer]) -> bytes:
    return np.array(numbers, dtype=kind).tobytes()


def _matrix(rows: Sequence[bytes], kind: np.dtype[np.integer], width: int) -> Matrix | None:
    """None unless all rows have `width` numbers."""
    if any(len(row) != width * kind.itemsize for row in rows):
        return None
    return np.frombuffer(b"".join(rows), dtype=kind).reshape(len(rows), width)
