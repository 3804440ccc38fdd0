"""What whoever operates jobs needs beside `arroyo run` and `arroyo stop`."""
