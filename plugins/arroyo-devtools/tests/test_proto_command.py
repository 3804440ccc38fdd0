"""`arroyo proto`: the configs of a plugin are compiled wherever arroyo-core is installed."""

from __future__ import annotations

import importlib.util

import pytest
from arroyo_devtools.commands import proto
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from arroyo_core.cli.main import main

needs_compiler = pytest.mark.skipif(importlib.util.find_spec("grpc_tools") is None, reason="needs grpcio-tools")


@pytest.fixture
def config(tmp_path, monkeypatch):
    """The config of a new plugin, in whose folder the test is."""
    assert main(["new", "plugin", "arroyo-acme", "--into", str(tmp_path)]) == 0
    monkeypatch.chdir(tmp_path / "arroyo-acme")
    return tmp_path / "arroyo-acme" / "src" / "arroyo_acme" / "config.proto"


@needs_compiler
def test_a_changed_config_is_compiled_with_its_comments(config, capsys):
    config.write_text(
        config.read_text().replace(
            "message RunningCountConfig {", "message RunningCountConfig {\n  // More.\n  bool more = 3;\n"
        )
    )
    assert main(["proto"]) == 0
    assert "src/arroyo_acme/config.proto: compiled" in capsys.readouterr().out
    assert "more" in config.with_name("config_pb2.py").read_text()
    assert "more: bool" in config.with_name("config_pb2.pyi").read_text()
    (file,) = FileDescriptorSet.FromString(config.with_name("descriptors.binpb").read_bytes()).file
    assert file.name == "arroyo_acme/config.proto"
    assert any("More." in location.leading_comments for location in file.source_code_info.location)


@needs_compiler
def test_a_mistake_is_told_with_its_line(config, capfd):
    config.write_text(config.read_text().replace("string column", "strnig column"))
    assert main(["proto", "src"]) == 2
    assert 'config.proto:23:3: "strnig" is not defined' in capfd.readouterr().err


def test_a_folder_without_configs_is_refused(tmp_path, capsys):
    assert main(["proto", str(tmp_path)]) == 2
    assert "there is no .proto file below" in capsys.readouterr().err


def test_a_missing_compiler_is_named(config, capsys, monkeypatch):
    monkeypatch.setattr(proto, "find_spec", lambda name: None)
    assert main(["proto"]) == 2
    assert "pip install 'grpcio-tools<1.79'" in capsys.readouterr().err
