"""Reads what jobs have left: journals, logs, checkpoints, tables of state and dead letters. Changes nothing."""
