"""A sink for arroyo-core pipelines; `plugin.py` registers it."""
