"""Bundles of user functions: how they are made, tested and signed."""
