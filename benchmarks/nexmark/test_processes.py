"""What the benchmark says of a tree of processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ..modules import ENVIRONMENT

_SECONDS = 0.8
_LEAVES_A_WORKER = f"""
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
worker = os.fork()
if worker == 0:
    while time.process_time() < {_SECONDS}:
        pass
    # It is looked at every 0.2 s, and must be there when it is.
    time.sleep(1)
    os._exit(0)
try:
    os.waitpid(worker, 0)
except ChildProcessError:
    pass
"""
#: In a process of its own: it becomes the parent of all orphans.
_MEASURE = """
import sys
from pathlib import Path
from benchmarks.nexmark.processes import run_tree
print(run_tree([sys.executable, "-c", sys.argv[1]], folder=Path(sys.argv[2])).cpu_s)
"""


def test_children_that_nobody_waits_for_are_charged(tmp_path: Path) -> None:
    """Spark's daemon ignores how its workers end, and then the kernel adds their time to nobody's."""
    command = [sys.executable, "-c", _MEASURE, _LEAVES_A_WORKER, str(tmp_path)]
    found = subprocess.run(command, env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=True)
    # The kernel counts in ticks, and the rest of the tree takes hardly any.
    assert float(found.stdout) > _SECONDS / 2
