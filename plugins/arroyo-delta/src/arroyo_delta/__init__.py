"""Delta Lake tables for Arroyo pipelines."""
