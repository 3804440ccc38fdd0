"""Tables in a folder: a SQLite catalog, and files beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from arroyo_iceberg.catalog import CatalogSettings, MissingTableError, check_catalog, read_table_name
from arroyo_iceberg.iceberg_pb2 import Catalog
from google.protobuf import json_format
from pyiceberg.table import Table

from arroyo_core.api import with_defaults


def catalog_config(folder: Path) -> dict[str, Any]:
    return {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": str(folder / "warehouse")}


def catalog_of(config: Mapping[str, Any]) -> CatalogSettings:
    return check_catalog(with_defaults(json_format.ParseDict(dict(config), Catalog())))


def load_table(folder: Path, name: str) -> Table:
    return catalog_of(catalog_config(folder)).load(read_table_name(name))


def make_table(folder: Path, name: str, rows: pa.Table, **options: Any) -> Table:
    """Append rows by the library's own means, to a table that is made where there is none."""
    catalog = catalog_of(catalog_config(folder)).open()
    catalog.create_namespace_if_not_exists(name.split(".")[0])
    table = catalog.create_table_if_not_exists(name, rows.schema, **options)
    table.append(rows)
    return table


def read_table(folder: Path, name: str, schema: pa.Schema, **scan: Any) -> pa.Table:
    """What a reader sees; no rows where there is no table."""
    try:
        table = load_table(folder, name)
    except MissingTableError:
        return schema.empty_table()
    return table.scan(**scan).to_arrow().select(schema.names).cast(schema)
