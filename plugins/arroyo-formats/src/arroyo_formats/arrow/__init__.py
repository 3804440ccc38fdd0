"""Arrow IPC."""
