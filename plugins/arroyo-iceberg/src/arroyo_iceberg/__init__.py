"""Iceberg tables as source and sink, by pyiceberg."""
