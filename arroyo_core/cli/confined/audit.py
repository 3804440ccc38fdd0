"""An audit hook that refuses what untrusted mode refuses, to any Python code of the process, for good."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from arroyo_core.errors import RefusedError

#: Started programs, changed files, sockets. The names are Python's.
_REFUSED = frozenset({
    "subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "pty.spawn",
    "os.startfile", "os.kill", "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink",
    "os.truncate", "os.chmod", "os.chown", "os.setxattr", "os.removexattr", "os.utime", "os.chflags",
    "os.putenv", "os.unsetenv", "signal.pthread_kill", "shutil.rmtree", "shutil.move", "socket.connect",
    "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname",
    "socket.gethostbyaddr", "socket.getnameinfo", "socket.getservbyname", "sqlite3.connect", "syslog.openlog",
    "webbrowser.open", "ftplib.connect", "imaplib.open", "poplib.connect", "smtplib.connect", "telnetlib.Telnet.open",
    "urllib.Request",
})  # fmt: skip
_LISTS = frozenset({"os.listdir", "os.scandir", "os.chdir", "os.walk", "os.fwalk", "glob.glob", "pathlib.Path.glob"})
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

#: What the hook has refused to code that did not ask the policy first; tests look that there is nothing.
refusals: list[str] = []


def install_audit_hook(readable: Sequence[Path]) -> None:
    """From now on files below `readable` can be read, folders there listed, and little else can be done.

    Cannot be taken back. Raises `RefusedError` in the code that tries.
    """
    allowed = tuple(os.path.realpath(path) for path in readable)

    def is_allowed(path: Any) -> bool:
        if isinstance(path, int):
            # A descriptor that is open already: whoever opened it was asked.
            return True
        found = os.path.realpath(os.fsdecode(path) if path else ".")
        return any(found == each or found.startswith(f"{each.rstrip('/')}/") for each in allowed)

    def audit(event: str, args: tuple[Any, ...]) -> None:
        if event in _REFUSED:
            raise _refusal(_what(event, args))
        if event != "open" and event not in _LISTS:
            return
        path = args[0] if args else "."
        if event == "open" and _is_for_writing(args):
            raise _refusal(f"to write to {_shown(path)}")
        if not is_allowed(path):
            raise _refusal(f"to read {_shown(path)}: --root DIR allows a folder")

    sys.addaudithook(audit)


def python_folders() -> list[Path]:
    """What Python reads by itself: its libraries, the installed distributions, time zones."""
    found = {Path(sys.prefix), Path(sys.base_prefix), *(Path(each) for each in sys.path if each)}
    # Distributions that are installed as links have their folders elsewhere.
    for module in list(sys.modules.values()):
        for folder in getattr(module, "__path__", None) or ():
            if "." not in module.__name__:
                found.add(Path(folder))
    devices = [Path(each) for each in ("/dev/null", "/dev/urandom", "/usr/share/zoneinfo", "/etc/localtime")]
    return [each for each in (*sorted(found), *devices) if each.exists() and each.resolve() != Path("/")]


def _refusal(what: str) -> RefusedError:
    refusals.append(what)
    return RefusedError(f"untrusted mode refuses {what}")


def _is_for_writing(args: tuple[Any, ...]) -> bool:
    mode, flags = (*args[1:3], None, None)[:2]
    is_written = isinstance(mode, str) and any(letter in mode for letter in "wax+")
    return is_written or (isinstance(flags, int) and bool(flags & _WRITES))


def _what(event: str, args: tuple[Any, ...]) -> str:
    if event.startswith(("socket.", "urllib.")):
        return "the network"
    if event == "subprocess.Popen":
        return f"to start a program, {_shown(args[0] if args else '')}"
    return f"{event} {_shown(args[0])}".strip() if args else event


def _shown(value: Any) -> str:
    return repr(os.fsdecode(value) if isinstance(value, bytes) else value)[:200]
