"""Streams that stay open between the epochs of one process."""

from __future__ import annotations

from arroyo_connectors import OpenStreams

from arroyo_mysql.cdc.changes import ChangeReader

open_streams: OpenStreams[ChangeReader] = OpenStreams()
