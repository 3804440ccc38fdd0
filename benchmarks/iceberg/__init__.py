"""Iceberg tables beside the bare library."""
