"""Builds the wheel of a project on this machine, as the distribution of an editable install would be published."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from arroyo_core.errors import SetupError

#: User and password of a URL: builders name the index that they ask, as their settings have it.
_CREDENTIALS: Final = re.compile(r"(?<=://)[^/@\s]+@")


def build_wheel(project: Path, into: Path) -> Path:
    """The wheel, in that empty folder. Raises `SetupError` with what the builder said."""
    said = "neither uv nor pip is installed"
    for command in _commands(project, into):
        done = subprocess.run(command, cwd=into, capture_output=True, text=True, check=False)
        found = sorted(into.glob("*.whl"))
        if done.returncode == 0 and found:
            return found[0]
        said = _CREDENTIALS.sub("", done.stderr or done.stdout).strip()[-1000:]
    raise SetupError(
        f"the project {project} is installed as editable, and its wheel cannot be built: {said}\n"
        "install it from a wheel, or install uv and what builds it"
    )


def _commands(project: Path, into: Path) -> Iterator[list[str]]:
    """First with the build tools of this environment, which needs no index."""
    uv = _uv()
    for isolation in (["--no-build-isolation"], []):
        if uv is not None:
            python = ["--python", sys.executable]
            yield [uv, "build", "--wheel", "--quiet", *isolation, *python, "--out-dir", str(into), str(project)]
        if find_spec("pip") is not None:
            pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", *isolation]
            yield [*pip, "--wheel-dir", str(into), str(project)]


def _uv() -> str | None:
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.exists() else shutil.which("uv")
