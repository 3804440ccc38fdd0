"""`arroyo run` as a person at a terminal sees it, and stops it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

EPOCH_LINE = re.compile(r"\S+Z epoch +\d+ ")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it had shown on stderr."""

    code: int
    text: str


def run_until_epochs(
    path: Path, epochs: int, *arguments: str, master: str = "local[2]", number: signal.Signals = signal.SIGTERM
) -> Ended:
    """Start `arroyo run`, send the signal after so many epochs of this run, and wait for its end."""
    arroyo = str(Path(sys.executable).with_name("arroyo"))
    command = [arroyo, "run", str(path), "--master", master, "--progress", "plain", *arguments]
    lines = []
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=path.parent
    ) as process:
        assert process.stderr is not None
        seen = 0
        for line in process.stderr:
            lines.append(line)
            seen += bool(EPOCH_LINE.match(line))
            if seen == epochs and EPOCH_LINE.match(line):
                process.send_signal(number)
                if number is signal.SIGKILL:
                    # Its JVM holds the pipe for a while longer.
                    break
        code = process.wait()
    return Ended(code, "".join(lines))
