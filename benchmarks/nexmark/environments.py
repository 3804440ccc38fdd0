"""An environment for each engine, below `build/bench`, with pinned versions; made by uv, again where pins change."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from ..modules import ROOT

HERE = Path(__file__).resolve().parent
BUILD = ROOT / "build" / "bench"


class NotInstalledError(Exception):
    """An engine's packages cannot be had here."""


def requirements(name: str, pins: Path = HERE) -> Path:
    return pins / f"requirements-{name}.txt"


def python_of(name: str, pins: Path = HERE) -> Path:
    """The interpreter of an engine's environment, which is made first where it is missing.

    `pins` is the folder with the requirements of the benchmark that asks. Raises `NotInstalledError` with the
    installer's reason.
    """
    folder = BUILD / f"env-{name}"
    pinned = requirements(name, pins).read_text() + (ROOT / "constraints.txt").read_text() * (name == "arroyo")
    stamp, wanted = folder / "installed", sha256(pinned.encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        BUILD.mkdir(parents=True, exist_ok=True)
        _uv("venv", "--quiet", "--clear", "--python", sys.executable, str(folder))
        _uv(
            "pip",
            "install",
            "--quiet",
            "--python",
            str(folder / "bin" / "python"),
            *_packages(name, pins),
        )
        stamp.write_text(wanted)
    return folder / "bin" / "python"


def _packages(name: str, folder: Path) -> list[str]:
    """Ours are installed from the tree as it is, with the versions of everything else that tests use."""
    pins = ["--constraint", str(ROOT / "constraints.txt")] if name == "arroyo" else []
    return [*pins, "--requirement", str(requirements(name, folder))]


def _uv(*arguments: str) -> None:
    environment = {
        "UV_FIND_LINKS": str(ROOT / ".venv" / "wheelhouse"),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_HTTP_TIMEOUT": "300",
        **os.environ,
    }
    # What is installed must not depend on which environment is active.
    environment.pop("VIRTUAL_ENV", None)
    done = subprocess.run(
        [sys.executable, "-m", "uv", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NotInstalledError(done.stderr.strip() or f"uv ended with {done.returncode}")
