"""The command `arroyo pack`."""
