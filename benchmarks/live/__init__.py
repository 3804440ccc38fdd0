"""What live workers reach, beside Structured Streaming, PyFlink and Polars."""
