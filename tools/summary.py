"""Closes a test run: one line per environment, every skip with its reason, and the sum.

    python tools/summary.py build/reports

Reads the JUnit files that pytest wrote there, and those in `first/` of tests that were tried again (second_try.py).
Fails where there is none, or where one holds a failure.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.etree import ElementTree

#: The folder of the reports of what was tried again.
FIRST = "first"


@dataclass(frozen=True, slots=True)
class Report:
    """What pytest said of one environment."""

    environment: str
    passed: int
    failed: int
    skipped: int
    seconds: float
    skip_reasons: tuple[str, ...]
    #: Each test that failed, with the first line of how.
    failures: Mapping[str, str] = field(default_factory=dict)


def read_report(path: Path) -> Report:
    suites = list(ElementTree.parse(path).getroot().iter("testsuite"))
    total, skipped = _sum(suites, "tests"), _sum(suites, "skipped")
    failed = _sum(suites, "failures") + _sum(suites, "errors")
    reasons = tuple(skip.get("message", "") for suite in suites for skip in suite.iter("skipped"))
    seconds = sum(float(suite.get("time", "0")) for suite in suites)
    failures = {
        f"{case.get('classname')}.{case.get('name')}": fault.get("message", "").partition("\n")[0]
        for suite in suites
        for case in suite.iter("testcase")
        for fault in (*case.iter("failure"), *case.iter("error"))
    }
    return Report(path.stem, total - skipped - failed, failed, skipped, seconds, reasons, failures)


def _sum(suites: Sequence[ElementTree.Element], attribute: str) -> int:
    return sum(int(suite.get(attribute, "0")) for suite in suites)


def render(reports: Sequence[Report]) -> str:
    width = max(len(report.environment) for report in reports)
    lines = [
        f"{report.environment:<{width}}  {report.passed:>5} passed  {report.failed:>3} failed"
        f"  {report.skipped:>3} skipped  {report.seconds:>7.1f} s"
        for report in reports
    ]
    reasons = Counter(reason for report in reports for reason in report.skip_reasons)
    lines += [f"skipped {count} x: {reason}" for reason, count in sorted(reasons.items())]
    passed, failed, skipped = (sum(getattr(r, name) for r in reports) for name in ("passed", "failed", "skipped"))
    seconds = sum(report.seconds for report in reports)
    lines.append(f"==== {passed} passed, {failed} failed, {skipped} skipped in {seconds:.2f}s ====")
    return "\n".join(lines)


def unstable(first: Sequence[Report], reports: Sequence[Report]) -> list[str]:
    """The tests that failed beside others and passed alone, each with how it failed."""
    still_failing = {test for report in reports for test in report.failures}
    return [
        f"UNSTABLE: {test} failed beside other tests and passed alone: {how}"
        for report in first
        for test, how in report.failures.items()
        if test not in still_failing
    ]


def main(folder: str) -> int:
    paths = sorted(Path(folder).glob("*.xml"))
    if not paths:
        print(f"no test reports in {folder}: no tests ran", file=sys.stderr)
        return 1
    reports = [read_report(path) for path in paths]
    first = [read_report(path) for path in sorted(Path(folder, FIRST).glob("*.xml"))]
    print(*unstable(first, reports), sep="\n")
    # What failed at first is in the report of the second try.
    print(render([*reports, *(replace(each, environment=f"{each.environment} (first)", failed=0) for each in first)]))
    return 1 if any(report.failed for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
