"""A database as sink and lookup for arroyo-core pipelines; `plugin.py` registers them."""
