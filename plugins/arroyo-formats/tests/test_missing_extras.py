from __future__ import annotations

import sys

import pyarrow as pa
import pytest
from arroyo_formats import read_choice
from arroyo_formats.extras import format_with_extra
from arroyo_formats.schemas_pb2 import AvroSettings, ProtobufSettings
from google.protobuf import struct_pb2

from arroyo_core.errors import ConfigError


@pytest.mark.parametrize(
    ("extra", "name", "settings", "library"),
    [("avro", "AvroFormat", AvroSettings, "pyruhvro"), ("protobuf", "ProtobufFormat", ProtobufSettings, "ptars")],
)
def test_a_missing_library_is_named_with_what_brings_it(monkeypatch, extra, name, settings, library):
    for module in [module for module in sys.modules if module.startswith(f"arroyo_formats.{extra}")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, library, None)
    found = format_with_extra(extra, name, settings)
    assert (found.name, found.settings_type) == (extra, settings)
    for call in (
        lambda: found.resolve(settings()),
        lambda: found.schema(settings(), None),
        lambda: found.reader(settings(), pa.schema([])),
        lambda: found.writer(settings(), pa.schema([])),
    ):
        with pytest.raises(ConfigError, match=rf"needs {library}: pip install 'arroyo-formats\[{extra}\]'"):
            call()


def test_a_fault_of_our_own_is_not_taken_for_a_missing_library():
    with pytest.raises(ModuleNotFoundError, match=r"arroyo_formats\.none"):
        format_with_extra("none", "NoneFormat", AvroSettings)


@pytest.mark.parametrize("name", ["avro", "protobuf"])
def test_the_formats_are_found_by_name(name: str):
    assert read_choice(struct_pb2.Value(string_value=name)).name == name
