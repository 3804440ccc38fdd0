"""Arroyo on Spark with live workers: the same pipelines, with `execution: live`."""

from __future__ import annotations

from .engine_arroyo import main

if __name__ == "__main__":
    main(execution="live")
