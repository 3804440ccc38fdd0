"""The formats of files: their names, their extensions, and a reader for each."""
