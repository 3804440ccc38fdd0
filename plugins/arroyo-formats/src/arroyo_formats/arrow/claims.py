"""Refuses messages of Arrow IPC that unpack to too much, before Arrow takes the memory."""

from __future__ import annotations

from arroyo_core.api.ipc_sizes import unpacked_sizes
from arroyo_formats.limits import ROW_GROUP_BYTES


class ClaimError(ValueError):
    """A message that would take too much memory."""


def check_claims(data: memoryview, *, is_file: bool) -> None:
    """Raise `ClaimError` for a message that unpacks to more than allowed."""
    for size in unpacked_sizes(data, is_file=is_file):
        problem = ROW_GROUP_BYTES.problem(size)
        if problem is not None:
            raise ClaimError(problem)
