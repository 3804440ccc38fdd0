"""Pictures of pipelines."""
