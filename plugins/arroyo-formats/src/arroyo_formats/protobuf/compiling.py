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
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from arroyo_core.api.limits import SCHEMA_BYTES
from arroyo_core.api.policy import current_policy
from arroyo_core.errors import ExternalError

COMPILER_TIMEOUT_S = 60
#: What the compiler ends with where it has found mistakes.
MISTAKES = 1
_NO_MISTAKE = re.compile(r"^WARNING:|^[IW]\d{4} |: warning: ")


class ProtoError(ValueError):
    """A `.proto` file that cannot be compiled or used; the message begins with the place, where it is known."""


def compile_file(path: Path) -> tuple[descriptor_pb2.FileDescriptorSet, list[tuple[str, str]]]:
    """The file with all that it imports, and the texts of those that are not Protobuf's own, the file itself last."""
    if not path.is_file():
        raise ProtoError(f"there is no file {path}")
    if path.stat().st_size > SCHEMA_BYTES.value:
        raise ProtoError(f"{path} is too large: {SCHEMA_BYTES.hint}")
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
            _put(Path(folder).resolve(), name, text)
        return _run(Path(folder), main)


def _put(folder: Path, name: str, text: str) -> None:
    """A registry says how files are called."""
    try:
        path = (folder / name).resolve()
        is_inside = path.is_relative_to(folder)
        if is_inside:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ProtoError(f"{name!r:.200} is not the path of an import: {error}") from error
    if not is_inside:
        raise ProtoError(f"{name!r:.200} is not the path of an import")


def from_base64(text: str) -> descriptor_pb2.FileDescriptorSet:
    """A compiled set of files."""
    try:
        found = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, DecodeError) as error:
        raise ProtoError("not a set of descriptors in base64") from error
    if not found.file:
        raise ProtoError("a set of descriptors without files")
    _check_names(found)
    return found


def _check_names(message: Message) -> None:
    """Raise `ProtoError` for a name that is not UTF-8: no compiler writes one, and decoders panic at it."""
    for field, value in message.ListFields():
        for each in value if field.is_repeated else (value,):
            if isinstance(each, Message):
                _check_names(each)
            elif field.type == FieldDescriptor.TYPE_STRING and isinstance(each, bytes):
                raise ProtoError(f"{field.full_name} is not UTF-8")


def _run(folder: Path, main: str) -> descriptor_pb2.FileDescriptorSet:
    current_policy().check_code("to start the compiler of .proto files")
    included = importlib.resources.files("grpc_tools") / "_proto"
    with tempfile.TemporaryDirectory() as target:
        out = Path(target) / "set"
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"-I{included}"]
        command += ["--include_imports", f"--descriptor_set_out={out}", main]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILER_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise ExternalError(f"the compiler of .proto files did not come to an end with {main}") from error
        said = _said(done.stderr, folder)
        if done.returncode == MISTAKES and said and "Traceback" not in said:
            raise ProtoError(said)
        if done.returncode:
            # It was killed, or failed by itself: that says nothing of the file, and messages are not bad for it.
            raise ExternalError(f"the compiler of .proto files failed with {main} ({done.returncode}): {said}")
        return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())


def _said(text: str, folder: Path) -> str:
    """The mistakes that the compiler names, without its warnings and its log."""
    lines = [line.replace(f"{folder}/", "") for line in text.splitlines() if line.strip()]
    return "; ".join(line for line in lines if not _NO_MISTAKE.search(line))
