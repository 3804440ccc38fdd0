"""Planning a pipeline of somebody who is not trusted asks no catalog and reads no file."""

from __future__ import annotations

import pytest
from arroyo_iceberg.iceberg_pb2 import LookupConfig, SinkConfig, SourceConfig
from arroyo_iceberg.plugin import SinkConstructor, SourceConstructor, TableLookupConstructor
from google.protobuf import json_format

from arroyo_core.api import ArroyoSchema, Registry, with_defaults
from arroyo_core.api.policy import PlanningPolicy, in_force
from arroyo_core.errors import RefusedError

from .support.faults import Calls
from .support.tables import catalog_config, make_table
from .test_conformance import ROWS

UNTRUSTED = PlanningPolicy(is_untrusted=True)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(monkeypatch)


@pytest.mark.parametrize(
    ("constructor", "message"), [(SourceConstructor(), SourceConfig()), (TableLookupConstructor(), LookupConfig())]
)
def test_a_source_and_a_lookup_are_refused_before_their_catalog_is_asked(tmp_path, calls, constructor, message):
    make_table(tmp_path, "shop.rows", ROWS)
    written = {"catalog": catalog_config(tmp_path), "table": "shop.rows"}
    config = with_defaults(json_format.ParseDict(written, message))
    with calls.watching(), in_force(UNTRUSTED):
        with pytest.raises(RefusedError, match="untrusted mode refuses to ask the catalog") as caught:
            constructor.resolve(config)
        assert calls.names == []
    assert caught.value.field == "catalog"


def test_a_sink_is_planned_without_its_catalog(tmp_path, calls):
    written = {"catalog": catalog_config(tmp_path), "table": "shop.rows", "if_missing": "create"}
    config = with_defaults(json_format.ParseDict(written, SinkConfig()))
    with calls.watching(), in_force(UNTRUSTED):
        resolved = SinkConstructor().resolve(config)
        made = SinkConstructor().with_config(resolved, Registry())
        made.operator.output_schema([ArroyoSchema(ROWS.schema)])
        assert calls.names == []
    assert list(tmp_path.iterdir()) == []
