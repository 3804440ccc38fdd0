"""SQL scripts as pipelines: what a person writes in SQL becomes the nodes that YAML would have."""
