"""Spark's DataFrames in and out of Arroyo pipelines."""
