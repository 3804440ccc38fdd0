"""`mysql.source`: a table whose rows have a column that grows."""
