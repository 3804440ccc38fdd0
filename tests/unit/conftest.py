"""What tests of several folders use."""

from ..own_logging import own_logging

__all__ = ["own_logging"]
