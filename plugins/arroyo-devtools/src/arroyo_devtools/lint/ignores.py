"""`arroyo: ignore[code]` in a comment, which silences findings of its own line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from arroyo_core.errors import Location
from arroyo_core.pipeline.languages import Yaml, language_of
from arroyo_core.pipeline.mistakes import nearest
from arroyo_core.plugin import PluginSet
from arroyo_devtools.formatting.comments import find_comments
from arroyo_devtools.lint.findings import CODES, Finding

_IGNORE = re.compile(r"arroyo:\s*ignore\b\s*(?:\[(?P<codes>[^\]]*)\])?")


@dataclass(frozen=True, slots=True)
class _Ignore:
    at: Location
    codes: tuple[str, ...]


def silence(findings: Iterable[Finding], texts: Mapping[str, str], plugins: PluginSet) -> list[Finding]:
    """The findings that no comment silences, and one for every comment that silences nothing."""
    ignores = [ignore for file, text in texts.items() for ignore in _find_ignores(file, text, plugins)]
    by_line = {(ignore.at.file, ignore.at.line): ignore for ignore in ignores}
    left, used = [], set()
    for finding in findings:
        ignore = by_line.get((finding.at.file, finding.at.line))
        if ignore is not None and finding.code in ignore.codes:
            used.add((ignore.at, finding.code))
        else:
            left.append(finding)
    for ignore in ignores:
        left += [_useless(ignore, code) for code in ignore.codes if (ignore.at, code) not in used]
        if not ignore.codes:
            left.append(_finding(ignore, "this comment silences nothing", "name the code: arroyo: ignore[code]"))
    return left


def _find_ignores(file: str, text: str, plugins: PluginSet) -> list[_Ignore]:
    if "arroyo:" not in text:
        return []
    found = []
    for line, column, comment in _comments(file, text, plugins):
        match = _IGNORE.search(comment)
        if match is not None:
            codes = tuple(code.strip() for code in (match["codes"] or "").split(",") if code.strip())
            found.append(_Ignore(Location(file, line, column + match.start()), codes))
    return found


def _comments(file: str, text: str, plugins: PluginSet) -> Iterable[tuple[int, int, str]]:
    language = language_of(file, plugins)
    if isinstance(language, Yaml):
        return ((each.line + 1, each.column + 1, each.text) for each in find_comments(text))
    return language.comments(text)


def _useless(ignore: _Ignore, code: str) -> Finding:
    if code not in CODES:
        near = nearest(code, CODES)
        meant = f"did you mean {near}?" if near else f"the codes are {', '.join(CODES)}"
        return _finding(ignore, f"there is no code {code!r}", meant)
    return _finding(ignore, f"there is no {code} in this line", "take the comment away")


def _finding(ignore: _Ignore, message: str, fix: str) -> Finding:
    return Finding(code="unused-ignore", message=message, fix=fix, at=ignore.at)
