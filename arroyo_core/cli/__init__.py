"""The command `arroyo`."""
