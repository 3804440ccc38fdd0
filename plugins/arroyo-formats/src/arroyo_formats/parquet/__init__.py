"""Apache Parquet."""
