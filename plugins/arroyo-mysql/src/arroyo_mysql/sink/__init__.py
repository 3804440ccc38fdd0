"""`mysql.sink`: rows of a stream in a table, exactly once."""
