"""Puts a console together."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field
from pathlib import Path

from arroyo_console.folders import Folders
from arroyo_console.looking.catalog import Catalog
from arroyo_console.planning.texts import Texts, TextSettings
from arroyo_console.service import Console, Parts
from arroyo_console.store import open_store
from arroyo_console.store.lease import Lease
from arroyo_console.store.store import sqlite_url
from arroyo_console.supervision.launching import LaunchSettings
from arroyo_console.supervision.supervisor import MAX_RESTARTS, Supervisor
from arroyo_core.plugin import installed_plugins


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSettings:
    """What `arroyo serve` is told about jobs and texts."""

    data: Path
    #: A URL of a database; None for a file in the data folder.
    database: str | None = None
    launch: LaunchSettings = field(default_factory=LaunchSettings)
    texts: TextSettings = field(default_factory=TextSettings)
    max_restarts: int = MAX_RESTARTS


def build_console(settings: ConsoleSettings) -> Console:
    """A console that has not been started; raises `SetupError` for a data folder or a database that cannot be used."""
    folders = Folders(settings.data)
    folders.make()
    previous = os.umask(0o077)
    try:
        store = open_store(settings.database or sqlite_url(folders.data / "console.db"))
    finally:
        os.umask(previous)
    lease = Lease(store.engine, shown=f"the server with pid {os.getpid()} on {socket.gethostname()}")
    environment = dict(os.environ)
    supervisor = Supervisor(
        store,
        folders,
        lease,
        settings=settings.launch,
        environment=environment,
        max_restarts=settings.max_restarts,
    )
    return Console(
        Parts(
            store=store,
            folders=folders,
            lease=lease,
            supervisor=supervisor,
            texts=Texts(scratch=folders.scratch, settings=settings.texts, environment=environment),
            catalog=Catalog(installed_plugins()),
            launch=settings.launch,
            environment=environment,
        )
    )
