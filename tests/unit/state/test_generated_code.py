"""The committed protobuf code is what the `.proto` says."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("suffix", ["py", "pyi"])
def test_generated_state_messages_match_the_proto_file(tmp_path, suffix):
    protoc = pytest.importorskip("grpc_tools.protoc", reason="grpcio-tools generates the protobuf code")
    arguments = ["protoc", f"-I{ROOT}", f"--{'python' if suffix == 'py' else 'pyi'}_out={tmp_path}"]
    assert protoc.main([*arguments, str(ROOT / "arroyo_core/proto/state.proto")]) == 0
    name = f"arroyo_core/proto/state_pb2.{suffix}"
    assert (tmp_path / name).read_text() == (ROOT / name).read_text()
