"""What each window and join costs."""
