"""A run of a job: `python -m arroyo_console.runner FOLDER ARGUMENT...` is `arroyo ARGUMENT...`, and leaves its end.

It is started in a session of its own, and outlives the server that started it. `process.json` says which process it
is, from the start on; `exit.json` how it ended. A run without the second one whose process is gone was killed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from arroyo_console.folders import EXIT, PROCESS
from arroyo_console.processes import boot_id, process_start
from arroyo_core.local_folders import private_opener


def main(arguments: list[str]) -> int:
    folder, command = Path(arguments[0]), arguments[1:]
    own = {"pid": os.getpid(), "process_start": process_start(os.getpid()), "boot_id": boot_id()}
    _write(folder / PROCESS, own)
    # Here: what it imports takes a second, and the server may look for the process before.
    from arroyo_core.cli.main import main as run

    code = 1
    try:
        code = run(command)
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1
        raise
    finally:
        _write(folder / EXIT, {"exit_code": code, "ended_us": time.time_ns() // 1000})
    return code


def _write(path: Path, document: dict[str, Any]) -> None:
    beside = path.with_name(f".{path.name}.new")
    with open(beside, "w", encoding="utf-8", opener=private_opener) as file:
        json.dump(document, file)
    beside.replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
