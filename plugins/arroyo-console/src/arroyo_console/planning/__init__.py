"""Looks at texts of pipelines: commands that do so in a process, and who calls them for the server."""
