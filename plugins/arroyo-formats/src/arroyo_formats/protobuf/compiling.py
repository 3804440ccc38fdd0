"""Compiles `.proto` files, in a process of its own: the compiler is C++, and its input may be anybody's."""

from __future__ import annotations

import base64
import binascii
import importlib.resources
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError

COMPILER_TIMEOUT_S = 60
_NO_MISTAKE = re.compile(r"^WARNING:|^[IW]\d{4} |: warning: ")


class ProtoError(ValueError):
    """A `.proto` file that cannot be compiled or used; the message begins with the place, where it is known."""


def compile_file(path: Path) -> tuple[descriptor_pb2.FileDescriptorSet, list[tuple[str, str]]]:
    """The file with all that it imports, and the texts of those that are not Protobuf's own, the file itself last."""
    if not path.is_file():
        raise ProtoError(f"there is no file {path}")
    compiled = _run(path.parent, path.name)
    texts = []
    for file in compiled.file:
        text = path.parent / file.name
        if text.is_file():
            texts.append((file.name, text.read_text(encoding="utf-8")))
    return compiled, texts


def compile_texts(files: Mapping[str, str], main: str) -> descriptor_pb2.FileDescriptorSet:
    """One of several texts, by the names by which they import each other."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = (Path(folder) / name).resolve()
            if not path.is_relative_to(Path(folder).resolve()):
                raise ProtoError(f"{name!r} is not the path of an import")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return _run(Path(folder), main)


def from_base64(text: str) -> descriptor_pb2.FileDescriptorSet:
    """A compiled set of files."""
    try:
        found = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, DecodeError) as error:
        raise ProtoError("not a set of descriptors in base64") from error
    if not found.file:
        raise ProtoError("a set of descriptors without files")
    return found


def _run(folder: Path, main: str) -> descriptor_pb2.FileDescriptorSet:
    included = importlib.resources.files("grpc_tools") / "_proto"
    with tempfile.TemporaryDirectory() as target:
        out = Path(target) / "set"
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"-I{included}"]
        command += ["--include_imports", f"--descriptor_set_out={out}", main]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILER_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise ProtoError(f"{main}: the compiler did not come to an end") from error
        if done.returncode:
            raise ProtoError(_said(done.stderr, folder) or f"{main}: the compiler failed ({done.returncode})")
        return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())


def _said(text: str, folder: Path) -> str:
    """The mistakes that the compiler names, without its warnings and its log."""
    lines = [line.replace(f"{folder}/", "") for line in text.splitlines() if line.strip()]
    return "; ".join(line for line in lines if not _NO_MISTAKE.search(line))
