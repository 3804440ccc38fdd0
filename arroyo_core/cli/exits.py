"""The exit codes of `arroyo`."""

from __future__ import annotations

OK = 0
FAILURE = 1
#: The user can fix it: a mistake in a pipeline, an argument, a missing plugin or a missing Java.
MISTAKE = 2
INTERRUPTED = 130
