"""The pytest plugin of arroyo-testing: makes tests of the `Conformance` suites in test modules.

pytest imports it at every start, and must not wait for pyarrow: neither this module nor its package imports it.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from itertools import dropwhile, groupby
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from arroyo_testing.conformance import Check, Conformance

_KIT = "arroyo_testing.conformance"
#: Classes of tests: what they assert is shown as in a file of tests.
pytest.register_assert_rewrite("arroyo_testing.databases")


def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> pytest.Collector | None:
    kit = sys.modules.get(_KIT)
    if kit is None or not isinstance(obj, kit.Conformance):
        return None
    suite: pytest.Collector = SuiteCollector.from_parent(collector, name=name, suite=obj)
    return suite


def _frames_of_author(tb: TracebackType) -> list[traceback.FrameSummary]:
    """From the first call into code that is neither pytest's nor ours; none where the kit itself is at fault."""
    inside = list(dropwhile(lambda frame: frame.filename != __file__, traceback.extract_tb(tb)))
    ours = [Path(__file__).parent, Path(sys.modules["arroyo_core"].__file__ or "").parent]
    return list(dropwhile(lambda frame: any(Path(frame.filename).is_relative_to(path) for path in ours), inside))


class SuiteCollector(pytest.Collector):
    """A suite: one collector per case."""

    def __init__(self, *, suite: Conformance, **options: Any) -> None:
        super().__init__(**options)
        self._suite = suite

    def collect(self) -> Iterator[pytest.Collector]:
        for case, checks in groupby(self._suite.checks(), key=lambda check: check.case):
            yield CaseCollector.from_parent(self, name=case, checks=list(checks))


class CaseCollector(pytest.Collector):
    """A case: one test per check."""

    def __init__(self, *, checks: list[Check], **options: Any) -> None:
        super().__init__(**options)
        self._checks = checks

    def collect(self) -> Iterator[pytest.Item]:
        for check in self._checks:
            yield CheckItem.from_parent(self, name=check.name, check=check)


class CheckItem(pytest.Item):
    """One check of one case."""

    def __init__(self, *, check: Check, **options: Any) -> None:
        super().__init__(**options)
        self._check = check

    def runtest(self) -> None:
        kit = sys.modules[_KIT]
        if self._check.skip:
            pytest.skip(self._check.skip)
        try:
            self._check.run()
        except kit.NotApplicable as reason:
            pytest.skip(str(reason))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The fault and how to fix it; the frames of the kit tell an author nothing."""
        error = excinfo.value
        if isinstance(error, sys.modules[_KIT].ConformanceError):
            return f"{error}\n\n{error.details}".rstrip()
        frames = _frames_of_author(excinfo.tb)
        if not frames:
            return super().repr_failure(excinfo, style)
        said = "".join(traceback.format_exception_only(error)).rstrip()
        where = "".join(traceback.format_list(frames))
        return f"{self._check.case} fails in {frames[0].name}(): {said}\n\n{where}{said}"

    def reportinfo(self) -> tuple[Any, int | None, str]:
        return self.path, None, f"{self._check.name} of {self._check.case}"
