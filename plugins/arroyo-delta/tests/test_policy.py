"""Planning a pipeline of somebody who is not trusted looks at no table that it may not look at; secrets stay secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arroyo_delta import location
from arroyo_delta.delta_pb2 import LookupConfig
from arroyo_delta.lookup import resolve_lookup
from arroyo_delta.sink_settings import check_sink, resolve_sink
from arroyo_delta.source_settings import check_source, resolve_source
from deltalake import write_deltalake
from google.protobuf import json_format

from arroyo_core.api.policy import PlanningPolicy, in_force
from arroyo_core.errors import ConfigError, ExternalError, RefusedError

from .support.sinks import Sink, sink_config
from .support.sources import Source, source_config

pytestmark = pytest.mark.once


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [1]}))
    return tmp_path / "t"


def lookup_config(**config: Any) -> LookupConfig:
    return json_format.ParseDict(config, LookupConfig())


@pytest.mark.parametrize("url", ["s3://bucket/t", "az://container/t", "gs://bucket/t"])
@pytest.mark.parametrize(
    "plan", [lambda url: resolve_source(source_config(table=url)), lambda url: resolve_lookup(lookup_config(table=url))]
)
def test_the_network_is_not_reached(plan, url):
    with in_force(PlanningPolicy(is_untrusted=True)), pytest.raises(RefusedError, match="needs the network") as refused:
        plan(url)
    assert refused.value.field == "table"


def test_only_tables_below_a_root_are_looked_at(table, tmp_path):
    with in_force(PlanningPolicy(is_untrusted=True, roots=(tmp_path,))):
        assert check_source(resolve_source(source_config(table=str(table)))).schema.names == ["id"]
    (tmp_path / "other").mkdir()
    with in_force(PlanningPolicy(is_untrusted=True, roots=(tmp_path / "other",))):
        for plan in (resolve_source, check_source):
            with pytest.raises(RefusedError, match="is not below"):
                plan(source_config(table=str(table)))


def test_a_sink_is_planned_without_a_look(monkeypatch):
    def opened(*_: object) -> None:
        raise AssertionError("the table is opened")

    monkeypatch.setattr(location.TableLocation, "open", opened)
    with in_force(PlanningPolicy(is_untrusted=True)):
        config = sink_config(table="s3://bucket/t", storage_options={"AWS_SECRET_ACCESS_KEY": "hunter2"})
        settings = check_sink(resolve_sink(config))
    assert "hunter2" not in repr(settings)


def test_an_outage_is_one_and_shows_no_secret():
    options = {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "ana",
        "AWS_SECRET_ACCESS_KEY": "hunter2",
        "AWS_REGION": "here",
        "max_retries": "0",
    }
    with pytest.raises(ExternalError, match="cannot list '_delta_log' of the table s3://bucket/t: ") as failed:
        location.make_location("s3://bucket/t", options).open()
    assert "\x1b" not in failed.value.message
    assert "\n" not in failed.value.message
    assert "hunter2" not in failed.value.message


@pytest.mark.parametrize("name", ["a b", "ü", "x#y?z", "100%"])
def test_odd_names_of_folders_are_taken_as_they_are(tmp_path, name):
    table = tmp_path / name
    with Sink(table, pa.schema([("id", pa.int64())])) as sink:
        sink.write([{"id": 1}], epoch=1)
    for url in (str(table), f"file://{table}"):
        with Source(url) as source:
            assert source.column("id") == [1]


def test_a_folder_that_the_library_would_look_for_elsewhere_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="must not look as if it had escapes") as refused:
        check_sink(sink_config(table=str(tmp_path / "a%41")))
    assert refused.value.field == "table"
