"""Aggregates whose results change: each change takes back the old result and adds the new one."""
