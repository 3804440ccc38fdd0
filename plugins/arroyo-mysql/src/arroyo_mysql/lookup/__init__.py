"""`mysql.lookup`: a table that is asked for keys."""
