"""DataFrames in and out of pipelines, beside what Spark does by itself."""
