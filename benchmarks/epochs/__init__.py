"""What an epoch costs."""
