"""`arroyo kafka`: topics as a pipeline reads them, and the positions of its job. Executors do not import this."""
