"""Rules of the Linux kernel for this process: what Python's audit hook cannot see, libraries in C and Rust.

Landlock confines files and TCP, and a filter of system calls refuses sockets of networks. Without privileges, for this
process alone, and for good. A kernel that has neither is no error: the other walls stand.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVS, _SECCOMP, _FILTER = 38, 22, 2
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
#: How many rights on files each version of Landlock knows.
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_TCP = 0b11

#: Of the architecture: its number for filters, and that of the call `socket`.
_SOCKET = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
_AF_UNIX = 1
_ALLOW, _DENY_ACCESS, _KILL = 0x7FFF0000, 0x00050000 | 13, 0x80000000

_libc = ctypes.CDLL(None, use_errno=True)


def confine_to_files(readable: Sequence[Path]) -> bool:
    """Only what is below `readable` can be opened, for reading; no TCP. False where the kernel cannot."""
    if not sys.platform.startswith("linux"):
        return False
    version = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    if version < 1:
        return False
    files = (1 << _RIGHTS.get(version, 16)) - 1
    attributes = struct.pack("QQ", files, _TCP) if version >= 4 else struct.pack("Q", files)
    ruleset = _libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    if ruleset < 0:
        return False
    try:
        for path in readable:
            _allow_reading(ruleset, path)
        return _no_new_privileges() and _libc.syscall(_RESTRICT_SELF, ruleset, ctypes.c_uint32(0)) == 0
    finally:
        os.close(ruleset)


def refuse_sockets() -> bool:
    """Sockets are only those of this machine. False where the kernel or the architecture cannot."""
    known = _SOCKET.get(platform.machine()) if sys.platform.startswith("linux") else None
    if known is None or not _no_new_privileges():
        return False
    architecture, socket_call = known
    program = [
        _load(4),
        _jump_if(architecture, 1, 0),
        _give(_KILL),
        _load(0),
        _jump_if(socket_call, 0, 3),
        _load(16),
        _jump_if(_AF_UNIX, 1, 0),
        _give(_DENY_ACCESS),
        _give(_ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(program))
    head = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)))
    return bool(_libc.prctl(_SECCOMP, _FILTER, ctypes.byref(head), 0, 0) == 0)


def _allow_reading(ruleset: int, path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights = _READ_FILE | (_READ_DIR if path.is_dir() else 0)
        rule = struct.pack("=Qi", rights, descriptor)
        _libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, ctypes.c_uint32(0))
    finally:
        os.close(descriptor)


def _no_new_privileges() -> bool:
    return bool(_libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)


def _load(offset: int) -> bytes:
    return struct.pack("HBBI", 0x20, 0, 0, offset)


def _jump_if(value: int, then: int, otherwise: int) -> bytes:
    return struct.pack("HBBI", 0x15, then, otherwise, value)


def _give(value: int) -> bytes:
    return struct.pack("HBBI", 0x06, 0, 0, value)
