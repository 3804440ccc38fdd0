"""`mysql.cdc`: a table, and its changes from the binlog."""
