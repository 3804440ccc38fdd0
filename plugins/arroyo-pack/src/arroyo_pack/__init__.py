"""Packs arroyo and plugins for executors that do not have them."""
