"""`postgres.sink`: rows by COPY, in a transaction with the token of their epoch."""
