"""Tables of PostgreSQL in pipelines."""
