"""Another user of this machine, who tries things."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

#: Who owns nothing, and is in no group of ours.
NOBODY = 65534
_BECOME = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")


def try_as_other_user(code: str, *arguments: object) -> str:
    """Run Python as another user; what it printed, or the last line of what it failed with.

    Where this machine lets nobody become another user the test is skipped; on CI, as root, it fails.
    """
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        if os.getuid() == 0 and os.environ.get("CI") == "true":
            pytest.fail("setpriv is not installed: attacks of other users are not tried")
        pytest.skip("only root can try things as another user, with setpriv")
    # A Python that others can run: that of an environment may be in a folder that they cannot open.
    python = shutil.which("python3", path="/usr/bin:/bin:/usr/local/bin") or sys.executable
    done = subprocess.run(
        [*_BECOME, python, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False, cwd="/"
    )
    return done.stdout.strip() if done.returncode == 0 else done.stderr.strip().splitlines()[-1]
