"""Fewer examples than usual, for each is a whole column; no deadline, for the first call of a kernel is slow."""

from hypothesis import settings

settings.register_profile("columns", parent=settings(), max_examples=40, deadline=None)
settings.load_profile("columns")
