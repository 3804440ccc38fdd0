"""Writes batches in a format; where the bytes go is not their concern."""
