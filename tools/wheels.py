"""Builds the wheel of every distribution into `dist/`, once: only where its files changed since.

    python tools/wheels.py

Environments install these files, so what is tested is what would be published.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from distributions import ROOT, Distribution, distributions

DIST = ROOT / "dist"
STAMPS = DIST / ".stamps"
UNPUBLISHED = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"}


def published_files(distribution: Distribution) -> Iterator[Path]:
    """Every file whose change must change the wheel."""
    yield distribution.folder / "pyproject.toml"
    for name in ("README.md", "LICENSE"):
        if (distribution.folder / name).exists():
            yield distribution.folder / name
    for package in (*distribution.packages, *distribution.forced):
        for path in sorted(package.rglob("*")):
            if path.is_file() and not UNPUBLISHED.intersection(path.parts):
                yield path


def fingerprint(distribution: Distribution) -> str:
    digest = hashlib.sha256()
    for path in published_files(distribution):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(distribution.folder)}:{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()


def build(distribution: Distribution) -> None:
    """Replace the distribution's wheel; the build back end is the pinned one of this environment."""
    for old in DIST.glob(f"{distribution.project.replace('-', '_')}-*.whl"):
        old.unlink()
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(DIST)]
    answer = subprocess.run(command, cwd=distribution.folder, check=False, capture_output=True, text=True)
    if answer.returncode != 0:
        sys.exit(f"cannot build {distribution.project} of {distribution.folder}:\n{answer.stdout}{answer.stderr}")


def main() -> int:
    STAMPS.mkdir(parents=True, exist_ok=True)
    known = distributions()
    expected = {distribution.wheel_name for distribution in known}
    for stray in DIST.glob("*.whl"):
        # A wheel whose folder was renamed or removed would still be installed by whoever takes all of them.
        if stray.name not in expected:
            stray.unlink()
    for distribution in known:
        stamp, wanted = STAMPS / distribution.name, fingerprint(distribution)
        wheel = DIST / distribution.wheel_name
        if wheel.exists() and stamp.exists() and stamp.read_text() == wanted:
            continue
        build(distribution)
        if not wheel.exists():
            print(f"{distribution.folder} built no {distribution.wheel_name}", file=sys.stderr)
            return 1
        stamp.write_text(wanted)
        print(f"built {wheel.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
