"""How fast formats read and write messages."""
