"""Writes `build/sbom.json`: everything that an installation of our wheels with all extras brings, as CycloneDX.

    python tools/sbom.py

The wheels of `dist/` go into an environment of their own, and the tool that lists it into another one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from distributions import ROOT, Distribution, distributions

FOLDER = ROOT / "build" / "sbom"
OUTPUT = ROOT / "build" / "sbom.json"


def with_extras(distribution: Distribution) -> str:
    extras = sorted(distribution.metadata["project"].get("optional-dependencies", {}))
    return f"dist/{distribution.wheel_name}" + (f"[{','.join(extras)}]" if extras else "")


def environment(name: str, *arguments: str) -> Path:
    """A new environment with what `tools/install.py` is told to install."""
    folder = FOLDER / name
    subprocess.run([sys.executable, "-m", "uv", "venv", "--quiet", str(folder)], check=True)
    command = [sys.executable, str(ROOT / "tools" / "install.py"), *arguments]
    subprocess.run(command, check=True, env={**os.environ, "VIRTUAL_ENV": str(folder)})
    return folder


def main() -> int:
    shutil.rmtree(FOLDER, ignore_errors=True)
    listed = environment("listed", *map(with_extras, distributions()))
    tool = environment("tool", "--group", "sbom")
    lister = str(tool / "bin" / "cyclonedx-py")
    command = [lister, "environment", "--output-format", "JSON", "--output-file", str(OUTPUT), str(listed)]
    subprocess.run(command, check=True)
    shutil.rmtree(FOLDER)
    packages = json.loads(OUTPUT.read_text(encoding="utf-8"))["components"]
    print(f"{OUTPUT.relative_to(ROOT)}: {len(packages)} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
