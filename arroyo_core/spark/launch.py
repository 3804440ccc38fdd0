"""Starts Spark's JVM so that other users of the machine learn nothing of its settings, and reach none of its sockets.

PySpark would put every setting into the arguments of the JVM, which `ps` shows to everybody: here they are in a file
that only this user can read, and that is gone when the JVM has read it. Unix sockets have no secret: whoever can
connect to them makes workers run code. They are in folders that only this user can open.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from arroyo_core.local_folders import make_socket_folder, private_opener
from arroyo_core.spark.target import defaults_file, split_submit_args

SOCKET_FOLDER_SETTING = "spark.python.unix.domain.socket.dir"

_ARGUMENTS_VARIABLE = "PYSPARK_SUBMIT_ARGS"
_FILE_OPTION = "--properties-file"
_SHELL = "pyspark-shell"


def socket_settings() -> dict[str, str]:
    """Where the driver and its JVM make sockets: in a folder that lasts as long as this process."""
    folder = make_socket_folder()
    atexit.register(_remove, folder, os.getpid())
    return {SOCKET_FOLDER_SETTING: str(folder)}


@contextlib.contextmanager
def settings_file(settings: Mapping[str, str]) -> Iterator[None]:
    """Let a JVM that PySpark starts meanwhile read these settings from a file; `PYSPARK_SUBMIT_ARGS` wins over them."""
    given = os.environ.get(_ARGUMENTS_VARIABLE)
    rest, other, more = _divide(split_submit_args(given) if given is not None else [_SHELL])
    folder = Path(tempfile.mkdtemp(prefix="arroyo-spark-"))
    path = folder / "settings.conf"
    try:
        # Spark reads one such file, and `spark-defaults.conf` only without it; of two lines the later counts.
        text = _text_of(Path(other) if other else defaults_file(os.environ))
        with open(path, "x", encoding="utf-8", opener=private_opener) as file:
            file.write(f"{text}\n{write_properties({**settings, **more})}")
        os.environ[_ARGUMENTS_VARIABLE] = shlex.join([_FILE_OPTION, str(path), *rest])
        yield
    finally:
        if given is None:
            os.environ.pop(_ARGUMENTS_VARIABLE, None)
        else:
            os.environ[_ARGUMENTS_VARIABLE] = given
        shutil.rmtree(folder, ignore_errors=True)


def write_properties(settings: Mapping[str, str]) -> str:
    """Settings as Java's `Properties` reads them."""
    return "".join(f"{_escaped(key, is_key=True)}={_escaped(value)}\n" for key, value in settings.items())


def _escaped(text: str, *, is_key: bool = False) -> str:
    special = "\\\n\r\t" + ("=: #!" if is_key else "")
    names = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    escaped = "".join(names.get(char, f"\\{char}") if char in special else char for char in text)
    # Blanks before a value are skipped otherwise.
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _divide(tokens: list[str]) -> tuple[list[str], str, dict[str, str]]:
    """The arguments that are no settings, the file that `--properties-file` named, and the settings of `--conf`."""
    rest: list[str] = []
    file, settings = "", {}
    remaining = iter(tokens)
    for token in remaining:
        if token == _SHELL:
            rest += [token, *remaining]
            break
        option, equals, value = token.partition("=")
        if option not in (_FILE_OPTION, "--conf", "-c"):
            rest.append(token)
            continue
        value = value if equals else next(remaining, "")
        if option == _FILE_OPTION:
            file = value
        else:
            key, _, setting = value.partition("=")
            settings[key] = setting
    return rest, file, settings


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _remove(folder: Path, owner: int) -> None:
    # A fork of this process ends too.
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
