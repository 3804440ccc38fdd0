"""Makes operators from configs and runs them in process, under the rules of a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arroyo_std.plugin import arroyo_register
from arroyo_testing import OperatorHarness
from google.protobuf.json_format import ParseDict
from hypothesis import HealthCheck, settings

from arroyo_core.api import ArrowOperator, ArroyoSchema, Registry, with_defaults

from .support.small_arrow import lower_limits

#: `limits` is the same for all examples of a test.
settings.register_profile("std", parent=settings(), suppress_health_check=[HealthCheck.function_scoped_fixture])
settings.load_profile("std")


def pytest_configure(config: pytest.Config) -> None:
    """What is in `functions` stands for modules of users, which are installed: configs name them."""
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(Path(__file__).parent / "functions")
    config.add_cleanup(patch.undo)


class Harness(OperatorHarness):
    """Checks every batch to the last buffer."""

    def send(self, batch: pa.RecordBatch) -> None:
        batch.validate(full=True)
        super().send(batch)


@pytest.fixture(scope="session")
def registry() -> Registry:
    registry = Registry()
    arroyo_register(registry)
    return registry


@pytest.fixture(scope="session")
def make(registry: Registry) -> Callable[..., ArrowOperator]:
    """`make("std.filter", predicate="price > 1")`: the operator for a config in its JSON form."""

    def make(operator: str, **config: Any) -> ArrowOperator:
        constructor = registry.constructors[operator]
        constructed = constructor.with_config(with_defaults(ParseDict(config, constructor.config_type())), registry)
        assert constructed.operator is not None
        assert constructed.name() == operator
        return constructed.operator

    return make


@pytest.fixture(params=["a gigabyte", "some hundred bytes"])
def limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one batch may hold: tests that use it run with Arrow's limits, and again with lowered ones."""
    if request.param == "some hundred bytes":
        lower_limits(monkeypatch)


@pytest.fixture(scope="session")
def run() -> Iterator[Callable[..., Harness]]:
    """`run(operator, [schema]).feed(batch).output`; a function that makes operators where one is restored."""
    harnesses = []

    def run(operator: Any, inputs: list[ArroyoSchema], **options: Any) -> Harness:
        harnesses.append(Harness(operator, inputs=inputs, **options))
        return harnesses[-1]

    yield run
    for harness in harnesses:
        harness.close()


@pytest.fixture(scope="session")
def events() -> pa.RecordBatch:
    """Six rows with nulls, names in capitals and with a space, nested columns."""
    return pa.RecordBatch.from_pydict(
        {
            "price": pa.array([10, 20, None, 40, 50, 60]),
            "Name": pa.array(["a", None, "c", "d", "", "f"]),
            "unit price": pa.array([1.5, 2.5, 3.5, None, 5.5, 6.5]),
            "time": pa.array([1, 2, 3, 4, 5, 6], pa.timestamp("s")).cast(pa.timestamp("us", tz="UTC")),
            "tags": pa.array([["x", "y"], [], None, ["z"], [None], ["x"]]),
            "seller": pa.array([{"id": 1, "city": "Rome"}, None, {"id": None, "city": "Oslo"}, *[{"id": 4}] * 3]),
        }
    )


@pytest.fixture(scope="session")
def events_schema(events: pa.RecordBatch) -> ArroyoSchema:
    return ArroyoSchema(events.schema, "time", ("price",))
