"""Kafka topics as source, sink and lookup table of pipelines."""
