"""Commands for whoever writes pipelines and plugins."""
