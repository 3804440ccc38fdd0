"""The command in its process: `python -m arroyo_core.cli.confined ARGUMENT...`, as `start` calls it."""

from __future__ import annotations

import os
import resource
import sys

from arroyo_core.cli import main as command_line
from arroyo_core.cli.confined.policies import policy_of, seconds_for
from arroyo_core.cli.confined.walls import confine
from arroyo_core.plugin import installed_plugins

if __name__ == "__main__":
    # Everything that plugins add is imported first: they are installed, and trusted.
    arguments = sys.argv[1:]
    installed_plugins()
    confined = command_line.parse(arguments)
    # For a process whose parent was killed.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds_for(confined), seconds_for(confined)))
    confine(policy_of(confined))
    code = command_line.run_command(confined)
    sys.stdout.flush()
    sys.stderr.flush()
    # Not `sys.exit`: threads of libraries may wait for what is refused.
    os._exit(code)
