"""Appends to Delta Lake tables beside the bare library."""
