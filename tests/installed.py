"""Plugins of the tests, as if pip had installed them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """What is in the folder can be imported, and plugins in it are found, here and in processes that are started."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        patch.syspath_prepend(folder)
        yield
