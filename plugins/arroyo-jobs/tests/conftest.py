"""What tests of several files use."""

from tests.own_logging import own_logging
from tests.unit.runtime.conftest import lab

__all__ = ["lab", "own_logging"]
