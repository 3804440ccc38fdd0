"""User functions beside those a checkpoint was written with; pure.

State that one version of a function made may mean something else to another. So code that changed is
refused at a restore until a person accepts it, and that is kept on record.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

import msgspec

from arroyo_core.pipeline.plan import Plan, UdfPin
from arroyo_core.proto.state_pb2 import CheckpointMetadata, DistributionDigest
from arroyo_core.state.failures import UNREADABLE_JSON, DamagedStateError

#: The property of a checkpoint that holds the changes that were accepted, as JSON.
ACCEPTED = "accepted_udf_changes"
#: How many of them are kept.
MAX_ACCEPTED = 100


class UdfVerdict(StrEnum):
    """What became of functions since a checkpoint."""

    SAME = "same"
    CHANGED = "changed"
    NEW = "new"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class UdfChange:
    """A bundle, pickle or distribution by the name that people call it; `before` and `after` are in words."""

    name: str
    verdict: UdfVerdict
    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        return f"{self.name}: was {self.before}, is {self.after}"


def record_udfs(plan: Plan) -> list[DistributionDigest]:
    """What a checkpoint keeps of the plan's user functions, by name."""
    return [_record(pin) for pin in sorted(plan.udfs, key=lambda pin: pin.key)]


def compare_udfs(plan: Plan, checkpoint: CheckpointMetadata) -> list[UdfChange]:
    """What became of each: those of the plan in its order, then the removed ones."""
    recorded = {udf.name: udf for udf in checkpoint.udfs}
    changes = []
    for pin, now in zip(plan.udfs, map(_record, plan.udfs), strict=True):
        before = recorded.pop(pin.key, None)
        if before is None:
            changes.append(UdfChange(name=pin.key, verdict=UdfVerdict.NEW, after=_describe(now)))
            continue
        verdict = UdfVerdict.SAME if _is_same(before, now) else UdfVerdict.CHANGED
        changes.append(UdfChange(name=pin.key, verdict=verdict, before=_describe(before), after=_describe(now)))
    removed = (UdfChange(name=name, verdict=UdfVerdict.REMOVED, before=_describe(recorded[name])) for name in recorded)
    return [*changes, *sorted(removed, key=lambda change: change.name)]


def changed_udfs(changes: Iterable[UdfChange], accepted: Collection[str] = ()) -> list[UdfChange]:
    """Those that a person must accept, and has not."""
    return [change for change in changes if change.verdict is UdfVerdict.CHANGED and change.name not in accepted]


def record_accepted(checkpoint: CheckpointMetadata, accepted: Sequence[UdfChange], *, epoch: int) -> bytes | None:
    """The property `ACCEPTED` of the epochs from `epoch` on: what the checkpoint has of it, and what came now.

    None where there is nothing to record.
    """
    kept = _accepted_of(checkpoint)
    kept += [{**asdict(change), "epoch": epoch} for change in accepted]
    return json.dumps(kept[-MAX_ACCEPTED:]).encode() if kept else None


def _accepted_of(checkpoint: CheckpointMetadata) -> list[object]:
    try:
        return msgspec.json.decode(checkpoint.properties.get(ACCEPTED, b"[]"), type=list[object])
    except UNREADABLE_JSON as error:
        raise DamagedStateError(
            f"the property {ACCEPTED!r} of epoch {checkpoint.epoch} is not a list: {error}"
        ) from error


def _record(pin: UdfPin) -> DistributionDigest:
    return DistributionDigest(name=pin.key, version=pin.version, sha256=bytes.fromhex(pin.identity or pin.sha256))


def _is_same(before: DistributionDigest, now: DistributionDigest) -> bool:
    """By content where it is known; a distribution has its version only."""
    if before.sha256 or now.sha256:
        return before.sha256 == now.sha256
    return before.version == now.version


def _describe(udf: DistributionDigest) -> str:
    digest = f" (sha256 {udf.sha256.hex()[:12]})" if udf.sha256 else ""
    return f"{udf.version or 'without a version'}{digest}"
