"""SQL queries that run here and in DuckDB: what comes must be equal, or the query refused with a place."""
