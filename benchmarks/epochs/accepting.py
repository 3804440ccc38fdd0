"""What the driver takes to accept an epoch: reading all reports, and comparing both ends of all channels."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import yaml

from arroyo_core import Pipeline
from arroyo_core.pipeline.plan import Plan
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.acceptance import accept
from arroyo_core.runtime.channels import received_frames, sent_frames
from arroyo_core.runtime.exchange import Inbox

SHUFFLES = 3
WIDE, NARROW = 300, 150
RUNS = 50


def pipeline(parallelism: int) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = [{"id": "ticks", "operator": "impulse.source", "config": {"count": 1}}]
    for number in range(SHUFFLES):
        before = nodes[-1]["id"]
        keys = ["counter"] if number % 2 else ["subtask_index"]
        nodes.append({"id": f"keyed_{number}", "operator": "std.key_by", "inputs": [before], "config": {"keys": keys}})
    nodes.append({"id": "nowhere", "operator": "std.blackhole", "inputs": [nodes[-1]["id"]]})
    return {"name": f"accepting_{parallelism}", "parallelism": parallelism, "nodes": nodes}


def whole_reports(plan: Plan) -> list[bytes]:
    """The reports of an epoch in which every subtask sent five frames along each of its channels."""
    reports = []
    for chain in plan.chains:
        outputs = [(plan.chain_of(edge.target), edge.input) for edge in plan.outputs_of(chain.tail)]
        inputs = [(plan.chain_of(edge.source), edge.input) for edge in plan.inputs_of(chain.head)]
        for subtask in range(chain.parallelism):
            report = pb.ChainReport(chain=chain.id, subtask=subtask, attempt=1000 + subtask, epoch=1)
            for target, number in outputs:
                counts = dict.fromkeys(range(target.parallelism), 5)
                report.sent.append(sent_frames(counts, chain=target.id, input=number))
            inboxes = {
                (number, sender): Inbox(attempt=1000 + sender, frames=5)
                for source, number in inputs
                for sender in range(source.parallelism)
            }
            report.received.extend(received_frames(inboxes))
            for operator_id in chain.nodes:
                report.operators.add(operator_id=operator_id, metrics=[7, 7, 0, 0, 0, 0, 12345])
            reports.append(report.SerializeToString())
    return reports


def measure(folder: Path) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    epochs = {}
    for width in (WIDE, NARROW):
        file = folder / f"{width}.yaml"
        file.write_text(yaml.safe_dump(pipeline(width), sort_keys=False))
        plan = Pipeline.from_yaml(file).plan
        assert plan.wave_count == SHUFFLES + 1
        epochs[f"{width} subtasks, {SHUFFLES * width**2:,} channels"] = (plan, whole_reports(plan))
    for _ in range(RUNS):
        for name, (plan, reports) in epochs.items():
            started = time.perf_counter()
            accept(plan, 1, [pb.ChainReport.FromString(data) for data in reports])
            found.setdefault(name, []).append(time.perf_counter() - started)
    return found
