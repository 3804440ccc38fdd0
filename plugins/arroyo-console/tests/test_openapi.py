"""Requests that are made from the OpenAPI document, valid and not: none is a fault of the server."""

from __future__ import annotations

import pytest
import schemathesis
from arroyo_console.api.app import make_api
from arroyo_console.safety.access import AccessRules
from arroyo_console.safety.middleware import Guard
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error

from .support.serving import console_in, end_jobs
from .support.texts import paced

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def api_schema(tmp_path_factory):
    console = console_in(tmp_path_factory.mktemp("console") / "data")
    console.start()
    console.create_pipeline(paced("one"), "yaml", start=False)
    app = make_api(console, AccessRules())
    yield schemathesis.openapi.from_asgi("/v1/openapi.json", Guard(app, AccessRules(host="testserver")))
    end_jobs(console)
    console.stop()


schema = schemathesis.pytest.from_fixture("api_schema")


# These start processes for each text; what they do with texts, other tests see.
@schema.exclude(path_regex="validate_query|graph$|preview|doctor|/output$").parametrize()
@settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_no_request_is_a_fault_of_the_server(case):
    response = case.call()
    case.validate_response(response, checks=(not_a_server_error,))
