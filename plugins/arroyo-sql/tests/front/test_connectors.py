"""Tables as operators of connectors."""

import pytest
from arroyo_sql.connectors import is_sink, is_source, lookup_of, sink_of, source_of

from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.plugin import installed_plugins

from ..support.scripts import read, shown

KAFKA = "bootstrap_servers = 'h:1', topic = 't', format = 'json'"


def connection(text, make=source_of, **values):
    mistakes = Mistakes()
    found = make(read(text, **values).only, plugins=installed_plugins(), mistakes=mistakes)
    assert shown(mistakes) == []
    return found


def mistakes_of(text, make=source_of, **arguments):
    mistakes = Mistakes()
    assert make(read(text).only, plugins=installed_plugins(), mistakes=mistakes, **arguments) is None
    return shown(mistakes)


class TestOptions:
    def test_options_are_fields_and_columns_the_schema(self):
        found = connection(
            "CREATE TABLE t (id BIGINT, ts TIMESTAMP(3), n BIGINT METADATA FROM 'offset_id',\n"
            "  d DATE GENERATED ALWAYS AS (ts), WATERMARK FOR ts AS ts - INTERVAL '1 second')\n"
            f"WITH (connector = 'kafka', {KAFKA}, idle_after = '1 minute', batch_rows = '100')"
        )
        assert found.operator == "kafka.source"
        assert found.config == {
            "bootstrap_servers": "h:1",
            "topic": "t",
            "format": "json",
            "idle_after": "1m",
            "batch_rows": 100,
            "schema": {"id": "int64", "ts": "timestamp_ms"},
            "metadata": {"n": "offset"},
            "event_time_field": "ts",
        }
        assert (found.places["batch_rows"].line, found.places["schema.ts"].column) == (3, 31)

    def test_names_of_flink_mean_the_same(self):
        found = connection(
            "CREATE TABLE t (id BIGINT PRIMARY KEY) WITH ('connector' = 'kafka', "
            "'properties.bootstrap.servers' = 'h:1', "
            "'topic' = 't', 'scan.startup.mode' = 'earliest-offset', 'format' = 'debezium-json', "
            "'properties.security.protocol' = 'SSL')"
        )
        assert found.config == {
            "bootstrap_servers": "h:1",
            "topic": "t",
            "start": "earliest",
            "client": {"security.protocol": "SSL"},
            "format": {"name": "debezium_json", "primary_key": ["id"]},
            "schema": {"id": "int64"},
        }

    @pytest.mark.parametrize(
        ("options", "make", "operator", "config"),
        [
            (
                "connector = 'impulse', event_rate = '5', message_count = 9",
                source_of,
                "impulse.source",
                {"rate": 5, "count": 9},
            ),
            ("connector = 'nexmark'", source_of, "nexmark.source", {"table": "event"}),
            (
                "connector = 'single_file', path = 'x', format = 'json', 'json.unstructured' = 'true'",
                source_of,
                "filesystem.source",
                {"path": "x", "format": "raw_string"},
            ),
            (
                "connector = 'filesystem', path = 'x', format = 'csv', csv.delimiter = ';', target_file_size = '1MiB'",
                sink_of,
                "filesystem.sink",
                {"path": "x", "format": {"name": "csv", "delimiter": ";"}, "max_file_size": "1MiB"},
            ),
            ("connector = 'stdout'", sink_of, "std.stdout", {}),
            ("connector = 'blackhole'", sink_of, "std.blackhole", {}),
        ],
    )
    def test_names_of_arroyo_mean_the_same(self, options, make, operator, config):
        found = connection(f"CREATE TABLE t WITH ({options})", make)
        assert (found.operator, found.config) == (operator, config)

    def test_a_primary_key_is_the_key_of_messages(self):
        found = connection(f"CREATE TABLE t (a INT, PRIMARY KEY (a)) WITH (connector = 'kafka', {KAFKA})", sink_of)
        assert found.config["key_fields"] == ["a"]
        assert "schema" not in found.config

    def test_a_secret_keeps_what_was_written(self):
        text = f"CREATE TABLE t (a INT) WITH (connector = 'kafka', {KAFKA}, client.sasl.password = '${{PW}}')"
        found = connection(text, environment={"PW": "geheim"})
        assert found.secrets == {"client.sasl.password": "${PW}"}

    def test_a_lookup_is_a_join_with_a_table_and_a_cache(self):
        found = connection(
            "CREATE TABLE t (a INT) WITH "
            "(connector = 'filesystem', type = 'lookup', path = 'x.csv', cache.ttl = '1 hour')",
            lookup_of,
        )
        assert found.operator == "std.lookup_join"
        assert found.config == {"table": {"path": "x.csv", "columns": ["a"]}, "cache": {"ttl": "1h"}}

    def test_without_a_type_a_connector_with_both_can_be_both(self):
        plugins = installed_plugins()
        both = read("CREATE TABLE t WITH (connector = 'filesystem', path = 'x')").only
        source = read("CREATE TABLE t WITH (connector = 'filesystem', type = 'source', path = 'x')").only
        assert (is_source(both, plugins), is_sink(both, plugins)) == (True, True)
        assert (is_source(source, plugins), is_sink(source, plugins)) == (True, False)


class TestMistakes:
    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ("connector = 'kafkaa', type = 'source'", "1:34 there is no connector 'kafkaa' with a source -> kafka"),
            (
                f"connector = 'kafka', {KAFKA}, topicc = 'x'",
                "1:100 connector 'kafka' (kafka.source) has no option 'topicc' -> topic",
            ),
            ("connector = 'nexmark', rate = 'many'", "1:52 'rate' must be a number, not the string 'many'"),
            ("connector = 'nexmark', table.x = 1", "1:45 option 'table.x' has no parts"),
            (
                "connector = 'kafka', topic = 't', format = 'json'",
                "1:34 table 't' (kafka.source) needs the field 'bootstrap_servers'",
            ),
            ("connector = 'stdout'", "1:34 connector 'stdout' has no source, only a sink"),
            ("type = 'source'", "1:14 table 't' needs the option 'connector'"),
            ("connector = 'kafka', type = 'sorce'", "1:50 'type' is one of source, sink and lookup -> source"),
            ("connector = 'kafka', type = 'sink'", "1:50 table 't' is a sink: it cannot be read"),
        ],
    )
    def test_a_mistake_has_the_place_of_its_option(self, options, expected):
        assert mistakes_of(f"CREATE TABLE t WITH ({options})")[0].startswith(expected)

    def test_metadata_needs_a_source_that_has_some(self):
        text = "CREATE TABLE t (a INT, m INT METADATA FROM 'x') WITH (connector = 'filesystem', path = 'x')"
        assert mistakes_of(text) == ["1:44 filesystem.source has no metadata: column 'm' cannot be METADATA"]

    def test_a_watermark_is_for_a_time(self):
        text = f"CREATE TABLE t (a INT, WATERMARK FOR a) WITH (connector = 'kafka', {KAFKA})"
        assert mistakes_of(text) == ["1:38 the column of a WATERMARK is a TIMESTAMP: 'a' is not"]

    def test_a_table_that_cannot_be_read_is_a_mistake_where_it_is_read(self):
        at = read("SELECT 1").only.at
        found = mistakes_of("CREATE TABLE t WITH (connector = 'stdout', type = 'sink')", used_at=at)
        assert found == ["1:1 table 't' is a sink: it cannot be read"]
