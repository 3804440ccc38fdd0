"""Keeps values that must not be seen out of texts that others made: messages of errors, what operators display."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus

#: What is shown for a secret that has no name.
HIDDEN = "***"
#: A part of a value is hidden as well, because parsers quote parts: from this many letters on,
_LEAST_PART = 3
#: and, where somebody cut it short, from this many on.
_LEAST_PREFIX = 4
_WORD = re.compile(r"\w+")
#: A value shorter than this is only replaced where it stands as a word, or texts would become unreadable.
_WORD_LENGTH = 4
#: A setting of this form is a word or a number that texts have anyway: `true`, `zstd`, `SASL_SSL`, `9092`.
_COMMON = re.compile(r"[A-Za-z_.-]{0,12}|[0-9.]{0,5}")
#: Of a setting, from this many letters on a part is hidden as well.
_LEAST_SETTING_PART = 12


@dataclass(slots=True)
class Redaction:
    """Remembers values, and replaces them by what may be shown. The first that is said about a value counts."""

    #: What to show for each value, in every form it may be quoted in.
    _given: dict[str, str] = field(default_factory=dict, repr=False)
    #: What to show for each word of the values.
    _parts: dict[str, str] = field(default_factory=dict, repr=False)

    def hide(self, value: str, shown: str) -> None:
        """Show `shown` for the value, and for each of its words."""
        self._hide_whole(value, shown)
        for part in _WORD.findall(value.casefold()):
            if len(part) >= _LEAST_PART:
                self._parts.setdefault(part, shown)

    def hide_setting(self, value: str, shown: str) -> None:
        """The same for one of many settings, of which only some are secrets: what all texts have stays."""
        if _COMMON.fullmatch(value):
            return
        self._hide_whole(value, shown)
        for part in _WORD.findall(value):
            if len(part) >= _LEAST_SETTING_PART:
                self._hide_whole(part, shown)

    def redact(self, text: str) -> str:
        """`text` with every hidden value, and every word of one, replaced. Hides rather too much than too little."""
        if not self._given:
            return text
        # The longest first: one secret may contain another.
        patterns = [_pattern(value) for value in sorted(self._given, key=len, reverse=True)]
        return re.sub("|".join([*patterns, _WORD.pattern]), lambda match: self._hidden(match.group()), text)

    def _hide_whole(self, value: str, shown: str) -> None:
        for form in (value, repr(value)[1:-1], json.dumps(value)[1:-1], quote(value, safe=""), quote_plus(value)):
            if form:
                self._given.setdefault(form, shown)

    def _hidden(self, found: str) -> str:
        if found in self._given:
            return self._given[found]
        word = found.casefold()
        if word in self._parts:
            return self._parts[word]
        if len(word) < _LEAST_PREFIX:
            return found
        return next((shown for part, shown in self._parts.items() if part.startswith(word)), found)


def _pattern(value: str) -> str:
    escaped = re.escape(value)
    return escaped if len(value) >= _WORD_LENGTH else rf"(?<!\w){escaped}(?!\w)"
