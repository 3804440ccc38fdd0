"""Completion of words in shells."""
