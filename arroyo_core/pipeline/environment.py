"""`${NAME}` in pipeline files: substitution, and keeping the values out of everything shown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import quote, quote_plus

#: A part of a value is hidden as well, because parsers quote parts: from this many letters on,
_LEAST_PART = 3
#: and, where somebody cut it short, from this many on.
_LEAST_PREFIX = 4
_WORD = re.compile(r"\w+")
REFERENCE = re.compile(r"\$\$|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-[^}]*)?\}|\$\{")

#: A value shorter than this is only replaced where it stands as a word, or texts would become unreadable.
_WORD_LENGTH = 4


@dataclass(slots=True)
class Environment:
    """Reads variables, and remembers which values it gave out so that `redact` can hide them."""

    variables: Mapping[str, str] = field(repr=False)
    #: What to show for each value, in every form it may be quoted in.
    _given: dict[str, str] = field(default_factory=dict, repr=False)
    #: What to show for each word of the values.
    _parts: dict[str, str] = field(default_factory=dict, repr=False)

    def substitute(
        self,
        text: str,
        report: Callable[[str, str], None],
        *,
        parameters: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        """Replace `${NAME}` and `${NAME:-default}`, and `$$` by a dollar sign.

        `report(message, reference)` is called for each reference that cannot be replaced. As in a
        shell, the default also stands for a variable that is set to nothing. A name of `parameters` has
        its value there, which is not a secret.
        """

        def replacement(match: re.Match[str]) -> str:
            reference, name, default = match.group(), match["name"], match["default"]
            if reference == "$$":
                return "$"
            if name is None:
                report("'${' begins no variable: write ${NAME} or ${NAME:-default}, or $$ for a dollar sign", reference)
                return reference
            value = parameters[name] if name in parameters else self.variables.get(name)
            if default is not None and not value:
                return str(default[2:])
            if value is None:
                report(f"environment variable {name} is not set; set it, or write ${{{name}:-default}}", reference)
                return reference
            if name not in parameters:
                self._remember(value, f"${{{name}}}")
            return value

        return REFERENCE.sub(replacement, text)

    def redact(self, text: str) -> str:
        """`text` with every value that was read from the environment, and every word of one, as `${NAME}`.

        For texts that others made: error messages of plugins, what operators display. Hides rather
        too much than too little.
        """
        if not self._given:
            return text
        # The longest first: one secret may contain another.
        patterns = [_pattern(value) for value in sorted(self._given, key=len, reverse=True)]
        return re.sub("|".join([*patterns, _WORD.pattern]), lambda match: self._hidden(match.group()), text)

    def _hidden(self, found: str) -> str:
        if found in self._given:
            return self._given[found]
        word = found.casefold()
        if word in self._parts:
            return self._parts[word]
        if len(word) < _LEAST_PREFIX:
            return found
        return next((shown for part, shown in self._parts.items() if part.startswith(word)), found)

    def _remember(self, value: str, reference: str) -> None:
        for form in (value, repr(value)[1:-1], json.dumps(value)[1:-1], quote(value, safe=""), quote_plus(value)):
            if form:
                self._given.setdefault(form, reference)
        for part in _WORD.findall(value.casefold()):
            if len(part) >= _LEAST_PART:
                self._parts.setdefault(part, reference)


def _pattern(value: str) -> str:
    escaped = re.escape(value)
    return escaped if len(value) >= _WORD_LENGTH else rf"(?<!\w){escaped}(?!\w)"
