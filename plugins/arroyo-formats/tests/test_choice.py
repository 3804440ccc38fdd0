"""The setting `format`: a name, or a mapping with the name and settings."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from arroyo_formats import FormatChoice, find_format, installed_formats, is_chosen, read_choice
from arroyo_formats.csv.format import CsvFormat
from google.protobuf import json_format, struct_pb2

from arroyo_core.api import Origin
from arroyo_core.errors import ConfigError, PluginError
from arroyo_core.plugin import discover, hookimpl


def value(written: Any) -> struct_pb2.Value:
    return json_format.ParseDict(written, struct_pb2.Value())


def choose(written: Any, **options: Any) -> FormatChoice:
    return read_choice(value(written), **options)


@pytest.mark.parametrize("written", ["csv", "CSV", {"name": "csv"}, {"name": "Csv", "delimiter": ","}])
def test_a_name_in_any_case_or_a_mapping_chooses_a_format_with_its_defaults(written: Any) -> None:
    choice = choose(written)
    assert (choice.name, choice.settings.delimiter, choice.settings.no_header) == ("csv", ",", False)


@pytest.mark.parametrize(
    "written", [{"no_header": True}, {"noHeader": True}, {"no_header": "true"}, {"no_header": True, "delimiter": None}]
)
def test_settings_are_written_as_in_configs_of_operators(written: dict[str, Any]) -> None:
    assert choose({"name": "csv", **written}).settings.no_header is True


@pytest.mark.parametrize("written", ["", None])
def test_an_empty_text_chooses_nothing(written: Any) -> None:
    assert not is_chosen(value(written))
    assert choose(written, default="json").name == "json"
    with pytest.raises(ConfigError, match="format is needed"):
        choose(written)


@pytest.mark.parametrize(
    ("written", "field", "message"),
    [
        ("jsonn", "format", "there is no format 'jsonn'"),
        (5, "format", "a format is a name"),
        (["csv"], "format", "a format is a name"),
        ({"delimiter": ";"}, "format", "a format is a name"),
        ({"name": "csv", "delimitr": ";"}, "format.delimitr", "there is no setting 'delimitr'"),
        ({"name": "csv", "no_header": "perhaps"}, "format.no_header", "must be one of true, false"),
        ({"name": "csv", "delimiter": ["a"]}, "format.delimiter", "delimiter cannot be"),
        ({"name": "csv", "delimiter": "||"}, "format.delimiter", "one ASCII character"),
    ],
)
def test_a_mistake_has_its_path(written: Any, field: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        choose(written).resolve()
    assert raised.value.field == field
    assert message in str(raised.value)


def test_infinity_is_no_format() -> None:
    with pytest.raises(ConfigError, match="a format is a name"):
        read_choice(struct_pb2.Value(number_value=float("inf")))


def test_a_mistake_about_columns_is_one_of_the_schema_or_of_a_setting() -> None:
    columns = pa.schema([("a", pa.int64())])
    with pytest.raises(ConfigError) as raised:
        choose("json").schema(None)
    assert raised.value.field == "schema"
    for check in (FormatChoice.schema, FormatChoice.check_files):
        with pytest.raises(ConfigError) as raised:
            check(choose({"name": "debezium_json", "primary_key": ["b"]}), columns)
        assert raised.value.field == "format.primary_key[0]"


@pytest.mark.parametrize("written", ["json", {"name": "debezium_json", "primary_key": ["a", "b"]}, {"name": "csv"}])
def test_a_choice_is_read_again_from_what_it_is_written_as(written: Any) -> None:
    choice = choose(written).resolve()
    assert read_choice(choice.to_value()) == choice


def test_a_format_without_files_says_which_have_them() -> None:
    with pytest.raises(ConfigError, match="there are no raw_bytes files") as raised:
        choose("raw_bytes").files()
    assert "csv" in raised.value.allowed


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_rows_are_not_written_as_messages_of_whole_files(name: str) -> None:
    with pytest.raises(ConfigError, match="a whole file of many rows") as raised:
        choose(name).writer(pa.schema([("a", pa.int64())]))
    assert raised.value.field == "format"


def test_a_format_that_two_distributions_claim_takes_no_other_away() -> None:
    class Rival(CsvFormat):
        name = "json"

    class Module:
        @staticmethod
        @hookimpl
        def arroyo_format() -> list[Any]:
            return [Rival()]

    plugins = discover()
    plugins.hooks.register(Module(), Origin("rival", "2.0"))
    assert find_format("csv", plugins).name == "csv"
    assert "json" not in installed_formats(plugins)
    with pytest.raises(PluginError, match=r"'json' is claimed by arroyo-formats \S+ and by rival 2.0: uninstall"):
        find_format("json", plugins)
