"""Pipelines that are written in Python: what a program declares becomes the document that a file would be."""
