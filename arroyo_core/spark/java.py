"""Finds a Java that Spark can use, and says plainly what to do where there is none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from arroyo_core.errors import SetupError
from arroyo_core.spark.releases import oldest_java


def check_java() -> str:
    """The command of the Java that Spark would start; raises `SetupError` unless it is there and new enough."""
    oldest = oldest_java()
    advice = (
        f"Spark needs Java {oldest} or later: install it (Debian and Ubuntu: apt-get install openjdk-17-jre-headless; "
        "macOS: brew install openjdk@17) or point JAVA_HOME to it"
    )
    home = os.environ.get("JAVA_HOME")
    command = shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")
    if command is None:
        where = f"in JAVA_HOME ({home})" if home else "on the PATH"
        raise SetupError(f"no Java found {where}. {advice}.")
    version = java_version(command)
    if version is None:
        raise SetupError(f"{command} does not run. {advice}.")
    if version < oldest:
        raise SetupError(f"{command} is Java {version}. {advice}.")
    return command


def java_version(command: str) -> int | None:
    """The feature version (8, 17, 21) of a java command; None if it does not run."""
    try:
        done = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(\d+)(?:\.(\d+))?', done.stderr + done.stdout)
    if done.returncode != 0 or found is None:
        return None
    major = int(found[1])
    return int(found[2] or 0) if major == 1 else major
