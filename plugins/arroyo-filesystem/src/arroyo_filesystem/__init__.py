"""Files as source and sink: Parquet, JSON lines, CSV and Arrow IPC on any fsspec storage."""
