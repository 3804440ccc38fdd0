"""How `arroyo test` shows what came of a test: a line each, and tables of the rows that differ."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from xml.etree import ElementTree

from arroyo_core.cli.tables import align
from arroyo_core.errors import OperatorError
from arroyo_core.pipeline.views.labels import count
from arroyo_testing.cases.comparison import Difference, DiffLine, Kind
from arroyo_testing.cases.rendering import cell_text
from arroyo_testing.cases.suite import CaseResult, CrashResult

#: Equal rows that are shown around those that differ.
_CONTEXT = 2
_MAX_LINES = 60
_MAX_CELL = 60
_MAX_FAILURES = 5
#: Stands for equal rows that are not shown.
_LEFT_OUT = "…"
_SIGNS = {Kind.SAME: " ", Kind.MISSING: "-", Kind.UNEXPECTED: "+"}
_COLOURS = {"-": "\x1b[31m", "+": "\x1b[32m", "^": "\x1b[1m"}
_PLAIN = "\x1b[0m"


def is_passed(result: CaseResult | CrashResult) -> bool:
    return not result.failures if isinstance(result, CrashResult) else result.is_passed


def result_line(result: CaseResult) -> str:
    """`ok` or `FAIL`, the name, and how long it took."""
    word = "ok  " if result.is_passed else "FAIL"
    return f"  {word}  {result.spec.name}  ({result.duration_s * 1000:.0f} ms)"


def failure_text(result: CaseResult, *, is_coloured: bool = False, is_debug: bool = False) -> str:
    """Why a test failed."""
    parts = []
    if result.is_unfailing:
        at = result.spec.at
        parts.append(f"{at}: the pipeline was expected to fail with {result.spec.error!r}, and did not")
    if result.error is not None:
        parts.append(error_text(result, is_debug=is_debug))
    parts += [difference_text(difference, is_coloured=is_coloured) for difference in result.differences]
    return "\n\n".join(parts)


def error_text(result: CaseResult, *, is_debug: bool) -> str:
    error = result.error
    wanted = f"\nexpected was: {result.spec.error}" if result.spec.error is not None else ""
    text = f"{result.spec.at}: the pipeline failed: {type(error).__name__}: {error}{wanted}"
    if is_debug and isinstance(error, OperatorError):
        text += f"\n{error.traceback}"
    return text


def difference_text(difference: Difference, *, is_coloured: bool = False) -> str:
    """The place of an expectation, what is wrong in words, and a table."""
    expected = difference.expected
    heading = f"{expected.at}: {expected.outlet}: {_summary(difference)} ({expected.where})"
    lines = [heading]
    if difference.lines:
        lines += ["", *_table(difference, is_coloured=is_coloured)]
    return "\n".join(lines)


def crash_line(result: CrashResult) -> str:
    """What a person wants to know of many crashes, in a line."""
    verdict = (
        "all as if nothing had happened"
        if not result.failures
        else f"{_crashes(len(result.failures))} changed the result"
    )
    calls = count(result.calls, "storage call")
    word = "ok  " if not result.failures else "FAIL"
    return (
        f"  {word}  {result.spec.name}: {_crashes(result.crashes)} at {calls}: {verdict}  ({result.duration_s:.1f} s)"
    )


def _crashes(number: int) -> str:
    return "1 crash" if number == 1 else f"{number} crashes"


def crash_failures(result: CrashResult) -> str:
    """The first crashes that changed something."""
    lines = [f"{failure.point}: {failure.problem}" for failure in result.failures[:_MAX_FAILURES]]
    left = len(result.failures) - _MAX_FAILURES
    return "\n".join([*lines, *([f"and {left} more"] if left > 0 else [])])


def result_json(result: CaseResult | CrashResult) -> dict[str, object]:
    """The same for tools; `crashes` and `storage_calls` are null where none was tried."""
    crashed = result if isinstance(result, CrashResult) else None
    return {
        "file": str(result.file),
        "name": result.spec.name,
        "is_passed": is_passed(result),
        "duration_s": result.duration_s,
        "failure": _failure_message(result),
        "crashes": crashed.crashes if crashed else None,
        "storage_calls": crashed.calls if crashed else None,
    }


def junit_xml(results: Iterable[CaseResult | CrashResult]) -> bytes:
    """The results in the form that build servers read."""
    suites = ElementTree.Element("testsuites")
    by_file: dict[str, list[CaseResult | CrashResult]] = {}
    for result in results:
        by_file.setdefault(str(result.file), []).append(result)
    for file, found in by_file.items():
        messages = [_failure_message(result) for result in found]
        suite = ElementTree.SubElement(
            suites,
            "testsuite",
            name=file,
            tests=str(len(found)),
            failures=str(sum(message is not None for message in messages)),
            time=f"{sum(result.duration_s for result in found):.3f}",
        )
        for result, message in zip(found, messages, strict=True):
            name = result.spec.name + (" (crashes)" if isinstance(result, CrashResult) else "")
            case = ElementTree.SubElement(suite, "testcase", classname=file, name=name, time=f"{result.duration_s:.3f}")
            if message is not None:
                failure = ElementTree.SubElement(case, "failure", message=message.splitlines()[0])
                failure.text = message
    ElementTree.indent(suites)
    text: bytes = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _failure_message(result: CaseResult | CrashResult) -> str | None:
    if isinstance(result, CrashResult):
        return crash_failures(result) if result.failures else None
    return None if result.is_passed else _printable(failure_text(result))


def _printable(text: str) -> str:
    """Without characters that XML cannot hold."""
    return "".join(letter if letter in "\n\t" or letter >= " " else "?" for letter in text)


def _summary(difference: Difference) -> str:
    expected = difference.expected
    if expected.count is not None:
        return f"{count(expected.count, 'row')} expected, {len(difference.found)} came"
    changed, missing, unexpected = (difference.count(kind) for kind in (Kind.CHANGED, Kind.MISSING, Kind.UNEXPECTED))
    words = [
        f"{count(missing, 'row')} missing" if missing else "",
        f"{count(unexpected, 'row')} not expected" if unexpected else "",
        f"{count(changed, 'row')} with other values" if changed else "",
    ]
    order = ", in order" if expected.is_ordered else ""
    return ", ".join(word for word in words if word) + order


def _table(difference: Difference, *, is_coloured: bool) -> list[str]:
    """`-` was expected and did not come, `+` came and was not expected, `^` marks the cells that differ."""
    shown = list(_with_context(difference.lines))
    texts = [(line, _texts(line, difference)) for line in shown]
    rows: list[tuple[str, Sequence[str]]] = [(" ", difference.names)]
    for line, cells in texts[:_MAX_LINES]:
        rows += [(_LEFT_OUT, ())] if line is None else _signed_rows(line, cells)
    aligned = align([cells for _, cells in rows])
    lines = [_signed(sign, text, is_coloured) for (sign, _), text in zip(rows, aligned, strict=True)]
    left = len(texts) - _MAX_LINES
    if left > 0:
        lines.append(f"    {_LEFT_OUT} and {left} more")
    return lines


def _with_context(lines: Sequence[DiffLine]) -> Iterator[DiffLine | None]:
    """The lines that differ, and equal ones near them; None for those left out."""
    changed = [place for place, line in enumerate(lines) if line.kind is not Kind.SAME]
    near = {place + step for place in changed for step in range(-_CONTEXT, _CONTEXT + 1)}
    is_cut = False
    for place, line in enumerate(lines):
        if place in near or not changed:
            is_cut = False
            yield line
        elif not is_cut:
            is_cut = True
            yield None


def _texts(line: DiffLine | None, difference: Difference) -> list[list[str]]:
    if line is None:
        return []
    rows = [line.found] if line.kind is Kind.SAME else [row for row in (line.expected, line.found) if row is not None]
    return [
        [_shortened(cell_text(cell, kind)) for cell, kind in zip(row, difference.types, strict=True)]
        for row in rows
        if row is not None
    ]


def _signed_rows(line: DiffLine, rows: Sequence[Sequence[str]]) -> list[tuple[str, Sequence[str]]]:
    if line.kind is not Kind.CHANGED:
        return [(_SIGNS[line.kind], rows[0])]
    longest = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    marks = ["^" * max(length, 1) if place in line.columns else "" for place, length in enumerate(longest)]
    return [("-", rows[0]), ("+", rows[1]), ("^", marks)]


def _signed(sign: str, text: str, is_coloured: bool) -> str:
    line = f"{' ' if sign == '^' else sign} {text}".rstrip()
    return "    " + (f"{_COLOURS[sign]}{line}{_PLAIN}" if is_coloured and sign in _COLOURS else line)


def _shortened(text: str) -> str:
    limit = max(_MAX_CELL, shutil.get_terminal_size().columns // 2)
    return text if len(text) <= limit else text[: limit - 1] + "…"
