"""Windows over event or processing time: tumbling, sliding and session, on partial aggregates."""
