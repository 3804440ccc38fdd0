"""The command `arroyo`; these are the names that plugins use."""

from typing import TYPE_CHECKING, Any

from arroyo_core.cli.commands import CommandGroup, Commands

if TYPE_CHECKING:
    from arroyo_core.cli.progress import Progress

__all__ = ["CommandGroup", "Commands", "Progress"]


def __getattr__(name: str) -> Any:
    # It brings plans and results of jobs, which most commands do not need.
    if name == "Progress":
        from arroyo_core.cli.progress import Progress

        return Progress
    raise AttributeError(name)
