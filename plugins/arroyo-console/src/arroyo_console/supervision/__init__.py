"""Keeps jobs running as people want them: starts them, asks them to stop, and starts those again that died."""
