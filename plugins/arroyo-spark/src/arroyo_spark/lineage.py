"""What tables and folders of Spark are called in catalogues."""

from __future__ import annotations

from arroyo_core.api import Dataset

#: Of tables: which catalog the session has is not known before it runs.
TABLES = "spark"


def is_place(name: str) -> bool:
    """Whether this is a URL or a path, and not the name of a table."""
    return "://" in name or name.startswith(("/", ".", "~"))


def table_dataset(name: str) -> Dataset:
    return Dataset(TABLES, name)
