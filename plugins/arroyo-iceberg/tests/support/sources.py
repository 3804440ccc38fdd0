"""Configs of sources as tests use them: of one table, planned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from arroyo_iceberg.iceberg_pb2 import SourceConfig
from arroyo_iceberg.source_settings import resolve_source
from google.protobuf import json_format

from arroyo_core.api import with_defaults

from .tables import catalog_config

NAME = "shop.rows"
SECOND = 1_000_000


def resolved(folder: Path, **config: Any) -> SourceConfig:
    """A planned config; a setting that is None is left away."""
    written = {"catalog": catalog_config(folder), "table": NAME, **config}
    written = {name: value for name, value in written.items() if value is not None}
    return resolve_source(with_defaults(json_format.ParseDict(written, SourceConfig())))
