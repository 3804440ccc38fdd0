"""Aggregate functions whose states merge: what windows, updating aggregates and joins group rows with."""
