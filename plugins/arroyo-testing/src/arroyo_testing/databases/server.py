"""What the suites need of a database's server."""

from __future__ import annotations

from typing import Any, Protocol


class DatabaseServer(Protocol):
    """A real server that is a test's own to stop, or is shared by all tests that leave it running."""

    @property
    def config(self) -> dict[str, object]:
        """The field `connection` of an operator."""

    def connect(self) -> Any:
        """A connection of DB-API 2.0 in autocommit, the caller's to close."""

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements on a connection of their own; returns the rows of the last one."""

    def start(self) -> None:
        """Return when it takes connections."""

    def stop(self) -> None:
        """End it in order."""

    def kill(self) -> None:
        """End it with SIGKILL, as a machine that loses its power does."""

    def restart(self) -> None:
        """Kill it and start it again."""
