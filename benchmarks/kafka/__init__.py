"""Topics as engines read them, beside a bare loop that only decodes."""
