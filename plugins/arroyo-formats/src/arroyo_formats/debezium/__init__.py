"""Debezium's JSON: one change of a row in each object."""
