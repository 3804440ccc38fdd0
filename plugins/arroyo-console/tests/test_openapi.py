"""Requests that are made from the OpenAPI document, valid and not: none is a fault of the server."""

from __future__ import annotations

import re

import pytest
import schemathesis
from arroyo_console.api.app import make_api
from arroyo_console.safety.access import AccessRules
from arroyo_console.safety.middleware import Guard
from hypothesis import HealthCheck, given, settings

from .support.serving import console_in, end_jobs
from .support.texts import paced

pytestmark = pytest.mark.once

#: These start processes for each text, or wait for events; what they do, other tests see.
LEFT_OUT = re.compile(r"validate_query$|pipelines/graph$|preview$|doctor$|/output$")


@pytest.fixture(scope="module")
def operations(tmp_path_factory):
    console = console_in(tmp_path_factory.mktemp("console") / "data")
    console.start()
    console.create_pipeline(paced("one"), "yaml", start=False)
    rules = AccessRules(host="testserver")
    document = schemathesis.openapi.from_asgi("/v1/openapi.json", Guard(make_api(console, rules), rules))
    yield [found.ok() for found in document.get_all_operations()]
    end_jobs(console)
    console.stop()


def test_no_request_is_a_fault_of_the_server(operations):
    statuses: dict[str, set[int]] = {}
    for operation in operations:
        if not LEFT_OUT.search(operation.path):
            statuses[operation.label] = _ask(operation)
    assert len(statuses) > 25
    faults = {label: found for label, found in statuses.items() if any(status >= 500 for status in found)}
    assert not faults
    # Requests were well-formed as well: not all of them were refused at the door.
    assert any(200 in found for found in statuses.values())


def _ask(operation) -> set[int]:
    found: set[int] = set()

    @settings(max_examples=10, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy())
    def ask(case):
        found.add(case.call().status_code)

    ask()
    return found
