"""What a closure holds: little, whatever the size of the plan and of the state."""

import random
from dataclasses import replace
from typing import ClassVar

import cloudpickle
import pyarrow as pa
import pytest

from arroyo_core.api import ArroyoSchema, Origin
from arroyo_core.pipeline.plan import Chain, Edge, Node, Plan, Routing
from arroyo_core.runtime.carry import OperatorLevels
from arroyo_core.runtime.context import Budget
from arroyo_core.runtime.request import EpochRequest
from arroyo_core.runtime.watermarks import Level
from arroyo_core.spark import parcels
from arroyo_core.spark.parcels import INLINE_BYTES, Parcel, ParcelOffice
from arroyo_core.spark.worker import arrow_function, frame_function, record_function

SCHEMA = ArroyoSchema(pa.schema({"a": pa.int64()}))


class Shared:
    """A broadcast variable: pickled by its number."""

    values: ClassVar[dict[int, bytes]] = {}

    def __init__(self, number):
        self.number = number

    @property
    def value(self):
        return self.values[self.number]

    def destroy(self):
        del self.values[self.number]


class Context:
    """The part of a SparkContext that makes broadcast variables."""

    def __init__(self):
        self.made = 0

    def broadcast(self, value):
        self.made += 1
        Shared.values[self.made] = value
        return Shared(self.made)


@pytest.fixture
def context():
    Shared.values.clear()
    parcels._opened.clear()
    return Context()


def noise(size, seed):
    """Bytes that cannot be compressed."""
    return random.Random(str(seed)).randbytes(size)


def make_plan(config_bytes):
    def node(name):
        return Node(
            id=name,
            operator=f"test.{name}",
            config=noise(config_bytes, name),
            parallelism=2,
            input_schemas=() if name == "s" else (SCHEMA,),
            output_schema=SCHEMA,
            origin=Origin("test", "1"),
        )

    return Plan(
        job_id="job",
        nodes={name: node(name) for name in ("s", "p", "o")},
        edges=(
            Edge(source="s", target="p", input=0, routing=Routing.SHUFFLE, keys=("a",)),
            Edge(source="p", target="o", input=0, routing=Routing.SHUFFLE, keys=("a",)),
        ),
        chains=tuple(
            Chain(id=number, nodes=(name,), parallelism=2, wave=number) for number, name in enumerate(("s", "p", "o"))
        ),
    )


def make_request(state_bytes, epoch=1):
    return EpochRequest(
        epoch=epoch,
        min_epoch=1,
        timestamp_us=5,
        budget=Budget(),
        storage_url="file:///nowhere",
        checkpoints={name: noise(state_bytes, (name, epoch)) for name in ("s", "p", "o")},
        carried={name: (OperatorLevels(output=Level(epoch)),) * 2 for name in ("s", "p", "o")},
    )


def closures(told):
    for wave, item in enumerate(told):
        yield record_function(item, wave, 2)
        yield frame_function(item, wave)
        yield arrow_function(item, wave)


@pytest.mark.parametrize("size", [10, INLINE_BYTES // 2, 3 << 20])
def test_a_closure_stays_small_whatever_the_plan_and_the_state_are(context, size):
    office = ParcelOffice(context)
    with office.telling(make_plan(size), make_request(size)) as told:
        sizes = [len(cloudpickle.dumps(closure)) for closure in closures(told)]
    assert max(sizes) < 2 * INLINE_BYTES + 10_000


@pytest.mark.parametrize("size", [10, 3 << 20])
def test_each_wave_is_told_all_that_its_own_operators_need_and_no_more(context, size):
    plan, request = make_plan(size), make_request(size)
    with ParcelOffice(context).telling(plan, request) as told:
        opened = [cloudpickle.loads(cloudpickle.dumps(item)).open() for item in told]
    for wave, (got_plan, got_request) in enumerate(opened):
        own = "spo"[wave]
        assert got_plan.nodes[own] == plan.nodes[own]
        assert {name for name, node in got_plan.nodes.items() if node.config} == {own}
        assert replace(got_plan, nodes=plan.nodes) == plan
        assert got_request.checkpoints == {own: request.checkpoints[own]}
        assert set(got_request.carried) == set("spo"[max(0, wave - 1) : wave + 1])
        assert replace(got_request, checkpoints=request.checkpoints, carried=request.carried) == request


def test_a_large_plan_is_shared_once_and_large_state_only_for_its_epoch(context):
    office, plan = ParcelOffice(context), make_plan(3 << 20)
    for epoch in range(1, 6):
        with office.telling(plan, make_request(1 << 20, epoch)):
            assert len(Shared.values) == 6
        assert len(Shared.values) == 3
    assert context.made == 3 + 5 * 3
    office.close()
    assert not Shared.values


def test_a_failing_epoch_leaves_nothing_behind(context):
    office = ParcelOffice(context)
    with pytest.raises(ZeroDivisionError), office.telling(make_plan(10), make_request(1 << 20)):
        raise ZeroDivisionError
    assert not Shared.values


def test_small_parcels_need_no_broadcast(context):
    with ParcelOffice(context).telling(make_plan(100), make_request(100)):
        pass
    assert context.made == 0


def test_without_broadcast_variables_all_is_in_the_closure_and_compressed():
    plan = make_plan(10)
    listing = b"".join(b"s3://bucket/folder/part-%09d.parquet" % number for number in range(100_000))
    plan = replace(plan, nodes={**plan.nodes, "s": replace(plan.nodes["s"], config=listing)})
    with ParcelOffice(None).telling(plan, make_request(10)) as told:
        sizes = [len(cloudpickle.dumps(item)) for item in told]
        assert told[0].open()[0].nodes["s"].config == listing
    assert INLINE_BYTES < sizes[0] < len(listing) / 5
    assert max(sizes[1:]) < 5_000


def test_a_worker_unpickles_a_plan_once_and_a_request_for_every_task(context):
    with ParcelOffice(context).telling(make_plan(10), make_request(10)) as told:
        first, second = told[0].open(), told[0].open()
    assert first[0] is second[0]
    assert first[1] is not second[1]


def test_a_worker_remembers_few_plans():
    for number in range(100):
        Parcel(str(number), b"p" + cloudpickle.dumps(number)).open_once()
    assert len(parcels._opened) <= 16
