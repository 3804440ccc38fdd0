"""CSV: one line for each row."""
