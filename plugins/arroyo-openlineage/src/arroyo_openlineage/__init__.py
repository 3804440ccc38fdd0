"""Tells OpenLineage about jobs."""
