"""Changes of databases: the sources beside bare readers of the same log."""
