"""Waiting for something to become true, instead of for some time to pass."""

from arroyo_testing.waiting import PATIENCE_S, wait_until

__all__ = ["PATIENCE_S", "wait_until"]
