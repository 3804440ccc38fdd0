"""Fuzzing of everything that reads bytes of somebody else: `python -m tests.fuzz TARGET --seconds 60`.

`targets.py` has the table. Each target takes bytes, and raises errors of the project or nothing; anything else is a
finding. `corpus/TARGET` has inputs to start from, and one for each finding of the past.
"""
