"""What tables of state cost."""
