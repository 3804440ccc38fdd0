"""Limits of what is taken in: each has a default, a message, and a variable of the environment.

A distribution declares its own in a module `limits`, with variables that begin with `ARROYO_MAX_`: these reach the
processes that plan in untrusted mode, and the workers of Spark. docs/limits.md has them all.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from arroyo_core.api.units import format_bytes, parse_bytes
from arroyo_core.errors import ConfigError, SetupError


@dataclass(frozen=True, slots=True)
class Limit:
    """The greatest number or size of something. `what` completes "at most N ..."."""

    variable: str
    default: int
    what: str
    is_bytes: bool = False
    #: What the variable may say.
    least: int = 0
    greatest: int = 2**63 - 1

    @property
    def value(self) -> int:
        """That of the environment, else the default; raises `SetupError` for what is none."""
        text = os.environ.get(self.variable, "")
        if not text:
            return self.default
        number = self._parse(text)
        if not self.least <= number <= self.greatest:
            raise SetupError(f"{self.variable} is from {self.least} to {self.greatest}, not {text!r:.100}")
        return number

    @property
    def text(self) -> str:
        """The value as people read it."""
        return format_bytes(self.value) if self.is_bytes else str(self.value)

    @property
    def hint(self) -> str:
        """What a message says: the limit, and what sets another."""
        return f"at most {self.text} {self.what}; {self.other}"

    @property
    def other(self) -> str:
        return f"{self.variable} sets another limit"

    def check(self, found: int, *, field: str | None = None) -> None:
        """Raise `ConfigError` where there is more than that, for configs of operators."""
        problem = self.problem(found)
        if problem is not None:
            raise ConfigError(problem, field=field)

    def problem(self, found: int) -> str | None:
        """What to say of so many, or of so large a one; None where that is allowed."""
        if found <= self.value:
            return None
        shown = format_bytes(found) if self.is_bytes else str(found)
        return f"{shown} are too many: {self.hint}"

    def _parse(self, text: str) -> int:
        if text.isascii() and text.isdigit():
            return int(text)
        if not self.is_bytes:
            raise SetupError(f"{self.variable} is a whole number, not {text!r:.100}")
        try:
            return parse_bytes(text)
        except ValueError as error:
            raise SetupError(f"{self.variable}: {error}") from error


#: How the variables of limits begin.
PREFIX = "ARROYO_MAX_"


FILE_BYTES = Limit("ARROYO_MAX_FILE_BYTES", 4 * 2**20, "in a pipeline file, and in each that it includes", True)
INCLUDES = Limit("ARROYO_MAX_INCLUDES", 1_000, "files are included")
INCLUDE_DEPTH = Limit("ARROYO_MAX_INCLUDE_DEPTH", 32, "files include one another in a row")
VALUES = Limit("ARROYO_MAX_VALUES", 200_000, "values in a pipeline, with the files that it includes")
DEPTH = Limit("ARROYO_MAX_DEPTH", 64, "values inside one another")
ALIASED_VALUES = Limit("ARROYO_MAX_ALIASED_VALUES", 10_000, "values that aliases stand for")
NODES = Limit("ARROYO_MAX_NODES", 10_000, "nodes in a pipeline")
COLUMNS = Limit("ARROYO_MAX_COLUMNS", 10_000, "columns in the rows of a node")
EXPRESSION_CHARS = Limit("ARROYO_MAX_EXPRESSION_CHARS", 200_000, "characters in a SQL expression or query")
EXPRESSION_OPERATORS = Limit("ARROYO_MAX_EXPRESSION_OPERATORS", 2_000, "operators in a SQL expression or query")
PATTERN_CHARS = Limit("ARROYO_MAX_PATTERN_CHARS", 1_000, "characters in a regular expression")
SCHEMA_BYTES = Limit("ARROYO_MAX_SCHEMA_BYTES", 16 * 2**20, "in a file with a schema or certificates", True)
BUNDLE_BYTES = Limit("ARROYO_MAX_BUNDLE_BYTES", 128 * 2**20, "in a bundle of functions, as it is stored", True)
BUNDLE_UNPACKED_BYTES = Limit("ARROYO_MAX_BUNDLE_UNPACKED_BYTES", 256 * 2**20, "in all files of a bundle", True)
BUNDLE_FILES = Limit("ARROYO_MAX_BUNDLE_FILES", 10_000, "files in a bundle")
#: Arrow moves columns of 64 levels at most; parsers that recurse end the process at some thousands.
VALUE_DEPTH = Limit("ARROYO_MAX_VALUE_DEPTH", 100, "levels of values and types in data", least=1, greatest=500)
UNTRUSTED_SECONDS = Limit("ARROYO_UNTRUSTED_SECONDS", 30, "seconds for a file, in untrusted mode")
UNTRUSTED_MEMORY = Limit("ARROYO_UNTRUSTED_MEMORY", 512 * 2**20, "of memory, in untrusted mode", True)
UNTRUSTED_OUTPUT = Limit("ARROYO_UNTRUSTED_OUTPUT", 64 * 2**20, "of output, in untrusted mode", True)

#: In the order of docs/limits.md, which is held against it.
LIMITS = (
    FILE_BYTES,
    INCLUDES,
    INCLUDE_DEPTH,
    VALUES,
    DEPTH,
    ALIASED_VALUES,
    NODES,
    COLUMNS,
    EXPRESSION_CHARS,
    EXPRESSION_OPERATORS,
    PATTERN_CHARS,
    SCHEMA_BYTES,
    BUNDLE_BYTES,
    BUNDLE_UNPACKED_BYTES,
    BUNDLE_FILES,
    VALUE_DEPTH,
    UNTRUSTED_SECONDS,
    UNTRUSTED_MEMORY,
    UNTRUSTED_OUTPUT,
)
