"""A server for Arroyo jobs: a web console and an HTTP API, and the supervision of jobs that outlive it."""
