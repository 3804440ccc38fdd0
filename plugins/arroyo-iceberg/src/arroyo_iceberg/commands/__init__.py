"""`arroyo iceberg`: looks at the tables of a pipeline, and clears them up."""
