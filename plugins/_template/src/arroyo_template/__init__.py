"""Operators for arroyo-core pipelines; `plugin.py` registers them."""
