"""Shows what the plugins say of themselves: in the terminal, and as the pages of the reference."""
