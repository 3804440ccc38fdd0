"""`postgres.cdc`: the changes of a table, from a snapshot on."""
