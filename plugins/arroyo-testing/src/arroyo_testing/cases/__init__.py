"""Tests of pipelines, written in YAML: what `arroyo test` runs."""
