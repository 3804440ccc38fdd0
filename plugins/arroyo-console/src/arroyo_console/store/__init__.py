"""What the server keeps in its database: pipelines with their versions, jobs with their runs, and who supervises."""

from arroyo_console.store.store import Store, open_store

__all__ = ["Store", "open_store"]
