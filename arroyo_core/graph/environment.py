"""`${NAME}` in pipeline files: substitution, and keeping the values out of everything shown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus

_REFERENCE = re.compile(r"\$\$|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-[^}]*)?\}|\$\{")

#: A value shorter than this is only replaced where it stands as a word, or texts would become unreadable.
_WORD_LENGTH = 4


@dataclass(slots=True)
class Environment:
    """Reads variables, and remembers which values it gave out so that `redact` can hide them."""

    variables: Mapping[str, str] = field(repr=False)
    _given: dict[str, str] = field(default_factory=dict, repr=False)

    def substitute(self, text: str, report: Callable[[str, str], None]) -> str:
        """Replace `${NAME}` and `${NAME:-default}`, and `$$` by a dollar sign.

        `report(message, reference)` is called for each reference that cannot be replaced. As in a
        shell, the default also stands for a variable that is set to nothing.
        """

        def replacement(match: re.Match[str]) -> str:
            reference, name, default = match.group(), match["name"], match["default"]
            if reference == "$$":
                return "$"
            if name is None:
                report("'${' begins no variable: write ${NAME} or ${NAME:-default}, or $$ for a dollar sign", reference)
                return reference
            value = self.variables.get(name)
            if default is not None and not value:
                return str(default[2:])
            if value is None:
                report(f"environment variable {name} is not set; set it, or write ${{{name}:-default}}", reference)
                return reference
            self._remember(value, f"${{{name}}}")
            return value

        return _REFERENCE.sub(replacement, text)

    def redact(self, text: str) -> str:
        """`text` with every value that was read from the environment shown as `${NAME}`.

        For texts that others made: error messages of plugins, what operators display.
        """
        if not self._given:
            return text
        # The longest first: one secret may contain another.
        patterns = [_pattern(value) for value in sorted(self._given, key=len, reverse=True)]
        return re.sub("|".join(patterns), lambda match: self._given[match.group()], text)

    def _remember(self, value: str, reference: str) -> None:
        for form in (value, repr(value)[1:-1], json.dumps(value)[1:-1], quote(value, safe=""), quote_plus(value)):
            if form:
                self._given.setdefault(form, reference)


def _pattern(value: str) -> str:
    escaped = re.escape(value)
    return escaped if len(value) >= _WORD_LENGTH else rf"(?<!\w){escaped}(?!\w)"
