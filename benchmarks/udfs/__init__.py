"""What user functions cost."""
