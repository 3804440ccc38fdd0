"""`arroyo files`: looks after the files of a sink."""
