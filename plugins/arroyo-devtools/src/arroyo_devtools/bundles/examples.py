"""Runs the examples in the docstrings of a bundle, as `arroyo udf test` does."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

from arroyo_core.udf.bundle import Bundle
from arroyo_core.udf.loading import import_modules, load_bundle
from arroyo_core.udf.user_function import UserFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleReport:
    """What became of a bundle's tests; `failures` are as doctest prints them."""

    signatures: tuple[str, ...]
    attempted: int
    failures: tuple[str, ...]


def check_bundle(bundle: Bundle) -> BundleReport:
    """Load a bundle, which checks its functions against the manifest, and run every example in its docstrings."""
    loaded = load_bundle(bundle)
    failures: list[str] = []
    attempted = 0
    seen: set[int] = set()
    # Inner modules first: what a package only passes on is tested where it is written.
    for module in sorted(import_modules(bundle), key=lambda module: -module.__name__.count(".")):
        for test in _tests(module, seen):
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            output: list[str] = []
            attempted += runner.run(test, out=output.append, clear_globs=False).attempted
            if runner.failures:
                failures.append("".join(output))
    signatures = tuple(function.signature for function in loaded.functions)
    return BundleReport(signatures=signatures, attempted=attempted, failures=tuple(failures))


def _tests(module: ModuleType, seen: set[int]) -> Iterator[doctest.DocTest]:
    name = module.__name__.partition(".")[2]
    globs = dict(vars(module))
    # The finder passes over user functions: they are neither functions nor classes.
    for attribute, value in vars(module).items():
        if isinstance(value, UserFunction) and value.doc and id(value) not in seen:
            seen.add(id(value))
            test = doctest.DocTestParser().get_doctest(value.doc, dict(globs), f"{name}.{attribute}", name, 0)
            if test.examples:
                yield test
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name, globs=globs):
        if test.examples:
            yield test
