"""The live view of `arroyo run`, on rich."""
