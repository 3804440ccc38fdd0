"""JSON: one object for each row."""
