"""Puts all walls around this process."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from pathlib import Path

from arroyo_core.api.limits import UNTRUSTED_MEMORY, UNTRUSTED_OUTPUT
from arroyo_core.api.policy import PlanningPolicy, set_process_policy
from arroyo_core.cli.confined import kernel
from arroyo_core.cli.confined.audit import install_audit_hook, python_folders

#: Libraries of the system that are loaded late, and what those of C and Rust ask the machine about.
_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/proc/self",
           "/sys/fs/cgroup", "/sys/devices/system/cpu", "/proc/cpuinfo", "/proc/meminfo")  # fmt: skip


def confine(policy: PlanningPolicy) -> None:
    """The policy holds from now on, whatever code of this process asks or does not ask. Cannot be taken back."""
    set_process_policy(policy)
    # Else every import would try.
    sys.dont_write_bytecode = True
    _limit(resource.RLIMIT_DATA, UNTRUSTED_MEMORY.value)
    _limit(resource.RLIMIT_FSIZE, UNTRUSTED_OUTPUT.value)
    _limit(resource.RLIMIT_CORE, 0)
    readable: Sequence[Path] = [*python_folders(), *policy.roots]
    kernel.confine_to_files([*readable, *(Path(each) for each in _SYSTEM)])
    kernel.refuse_sockets()
    install_audit_hook(readable)


def _limit(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (limit, limit))
