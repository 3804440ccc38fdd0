"""The sink of MySQL beside LOAD DATA by hand."""
