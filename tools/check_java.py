"""Fails with one sentence, which says how to install it, where Java is missing or too old for Spark.

Runs before anything is installed: the standard library only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

OLDEST_JAVA = 17
HOW_TO_INSTALL = (
    f"install Java {OLDEST_JAVA} or newer (Debian, Ubuntu: 'apt-get install openjdk-17-jre-headless'; "
    "Fedora: 'dnf install java-17-openjdk-headless'; macOS: 'brew install openjdk@17'), "
    "or point JAVA_HOME to one"
)


def java_command(environment: Mapping[str, str]) -> str | None:
    """The Java that Spark would start: JAVA_HOME's, else the one on the PATH."""
    home = environment.get("JAVA_HOME")
    if home:
        return str(Path(home) / "bin" / "java")
    return shutil.which("java", path=environment.get("PATH"))


def major_version(report: str) -> int | None:
    """The major version out of what `java -version` prints: 17 of "17.0.2", 8 of "1.8.0_392"."""
    found = re.search(r'version "(?:1\.)?(\d+)', report)
    return int(found.group(1)) if found else None


def complaint(environment: Mapping[str, str]) -> str | None:
    """What is wrong with this machine's Java, and how to fix it; None where it will do."""
    command = java_command(environment)
    if command is None:
        return f"Spark needs Java, and there is no 'java' on the PATH: {HOW_TO_INSTALL}."
    try:
        answer = subprocess.run([command, "-version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"Spark needs Java, and {command} cannot be run ({error}): {HOW_TO_INSTALL}."
    version = major_version(answer.stderr + answer.stdout)
    if answer.returncode != 0 or version is None:
        return f"Spark needs Java, and '{command} -version' does not report a version: {HOW_TO_INSTALL}."
    if version < OLDEST_JAVA:
        return f"Spark needs Java {OLDEST_JAVA} or newer, and {command} is Java {version}: {HOW_TO_INSTALL}."
    return None


def main() -> int:
    problem = complaint(os.environ)
    if problem:
        print(problem, file=sys.stderr)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
