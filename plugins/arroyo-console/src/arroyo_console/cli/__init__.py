"""`arroyo serve`, and the commands that speak to a server."""
