"""Whether the checkpoints of a job are whole, and what to do where they are not."""
