"""What tasks are told, kept apart from the closures that Spark sends for every wave of every epoch.

A plan is the same for all epochs, and may hold a listing of a hundred thousand files; what an epoch builds on grows
with the files of the state. Small ones are in the closure. Large ones are broadcast variables of ours, since PySpark
makes one of every closure over 1 MB, whose file in the driver's temporary folder nobody deletes: that of a plan is made
once, that of an epoch's request is deleted with the epoch. Each wave is told no more than its own operators need.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from arroyo_core.pipeline.plan import Plan
from arroyo_core.runtime.request import EpochRequest

if TYPE_CHECKING:
    from pyspark import Broadcast, SparkContext

#: What has more travels as a broadcast variable, where Spark has them. A closure holds a plan and a request.
INLINE_BYTES = 64 << 10
#: What has more is compressed.
_PLAIN_BYTES = 4 << 10
#: How many plans a worker remembers, one for each wave.
_REMEMBERED = 16


@dataclass(frozen=True, slots=True)
class Parcel:
    """A pickled value: in the closure that has the parcel, or in a broadcast variable."""

    digest: str
    data: bytes | Broadcast[bytes]

    def open(self) -> Any:
        """The value, made again."""
        data = self.data if isinstance(self.data, bytes) else self.data.value
        return pickle.loads(zlib.decompress(data[1:]) if data[:1] == _COMPRESSED else data[1:])

    def open_once(self) -> Any:
        """The value, which is shared with other tasks of this worker, and must be left as it is."""
        with _lock:
            if self.digest not in _opened:
                while len(_opened) >= _REMEMBERED:
                    del _opened[next(iter(_opened))]
                _opened[self.digest] = self.open()
            return _opened[self.digest]


_opened: dict[str, Any] = {}
_lock = threading.Lock()

#: The first byte of what is in a parcel.
_COMPRESSED, _PLAIN = b"z", b"p"


@dataclass(frozen=True, slots=True)
class Told:
    """What the tasks of a wave are told."""

    plan: Parcel
    request: Parcel

    def open(self) -> tuple[Plan, EpochRequest]:
        return self.plan.open_once(), self.request.open()


class ParcelOffice:
    """Makes the parcels of a driver, and deletes what they left with Spark."""

    def __init__(self, context: SparkContext | None) -> None:
        """Without a context, on Spark Connect, there are no broadcast variables, and all is in the closures."""
        self._context = context
        #: By the identity of the plan, which is kept so that no other one gets it.
        self._plans: dict[int, tuple[Plan, list[Parcel]]] = {}

    @contextmanager
    def telling(self, plan: Plan, request: EpochRequest) -> Iterator[list[Told]]:
        """What each wave of an epoch is told; what is left with Spark for this epoch is deleted afterwards."""
        plans = self._plan_parcels(plan)
        requests: list[Parcel] = []
        try:
            requests.extend(self._parcel(request_of(plan, wave, request)) for wave in range(plan.wave_count))
            yield [Told(*parcels) for parcels in zip(plans, requests, strict=True)]
        finally:
            _destroy(requests)

    def close(self) -> None:
        """No epoch follows."""
        for _, parcels in self._plans.values():
            _destroy(parcels)
        self._plans.clear()

    def _plan_parcels(self, plan: Plan) -> list[Parcel]:
        if id(plan) not in self._plans:
            waves = range(plan.wave_count)
            self._plans[id(plan)] = (plan, [self._parcel(plan_of(plan, wave)) for wave in waves])
        return self._plans[id(plan)][1]

    def _parcel(self, value: object) -> Parcel:
        # Only the driver pickles.
        import cloudpickle

        pickled = cloudpickle.dumps(value)
        is_large = len(pickled) > _PLAIN_BYTES
        data = _COMPRESSED + zlib.compress(pickled, 1) if is_large else _PLAIN + pickled
        digest = hashlib.sha256(data).hexdigest()
        if len(data) <= INLINE_BYTES or self._context is None:
            return Parcel(digest, data)
        return Parcel(digest, self._context.broadcast(data))


def plan_of(plan: Plan, wave: int) -> Plan:
    """The plan with the settings of the wave's own operators only; of the others it tells how they are connected."""
    own = {node for chain in plan.wave_chains(wave) for node in chain.nodes}
    nodes = {name: node if name in own else replace(node, config=b"") for name, node in plan.nodes.items()}
    return replace(plan, nodes=nodes)


def request_of(plan: Plan, wave: int, request: EpochRequest) -> EpochRequest:
    """The request with the state of the wave's own operators only, and the watermarks of whoever sends to them."""
    own = {node for chain in plan.wave_chains(wave) for node in chain.nodes}
    heard = own | {edge.source for edge in plan.edges if edge.target in own}
    return replace(
        request,
        checkpoints={name: data for name, data in request.checkpoints.items() if name in own},
        carried={name: levels for name, levels in request.carried.items() if name in heard},
    )


def _destroy(parcels: list[Parcel]) -> None:
    for parcel in parcels:
        if not isinstance(parcel.data, bytes):
            parcel.data.destroy()
