"""A source for arroyo-core pipelines; `plugin.py` registers it."""
