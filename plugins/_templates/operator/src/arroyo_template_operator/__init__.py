"""An operator for arroyo-core pipelines; `plugin.py` registers it."""
