"""The HTTP API of the console, `/v1`."""
