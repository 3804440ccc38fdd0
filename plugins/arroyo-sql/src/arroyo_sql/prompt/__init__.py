"""The prompt of `arroyo sql`: what is created is kept, and queries run in this process."""
