"""The command `arroyo`; these are the names that plugins use."""

from typing import TYPE_CHECKING, Any

from arroyo_core.cli.commands import CommandGroup, Commands

if TYPE_CHECKING:
    from arroyo_core.cli.observers import Observer
    from arroyo_core.cli.progress import Progress

__all__ = ["CommandGroup", "Commands", "Observer", "Progress"]


def __getattr__(name: str) -> Any:
    # They bring plans and results of jobs, which most commands do not need.
    if name == "Observer":
        from arroyo_core.cli.observers import Observer

        return Observer
    if name == "Progress":
        from arroyo_core.cli.progress import Progress

        return Progress
    raise AttributeError(name)
