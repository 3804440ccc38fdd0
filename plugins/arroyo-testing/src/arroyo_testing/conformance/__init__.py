"""The conformance kit: the rules that operators, sources, sinks, lookups, formats and storage must keep, as tests.

    from arroyo_testing.conformance import Conformance, OperatorCase

    conformance = Conformance("acme.plugin", [OperatorCase("acme.running_count", {"key": "word"}, inputs=[ROWS])])

In a test module that is all: pytest finds the suite, and runs one test per check.
"""

from arroyo_testing.conformance.cases import (
    FormatCase,
    LookupCase,
    OperatorCase,
    SinkCase,
    SourceCase,
    StorageCase,
    Stream,
)
from arroyo_testing.conformance.faults import ConformanceError, NotApplicable
from arroyo_testing.conformance.rules import Rule
from arroyo_testing.conformance.suite import Check, Conformance

__all__ = [
    "Check",
    "Conformance",
    "ConformanceError",
    "FormatCase",
    "LookupCase",
    "NotApplicable",
    "OperatorCase",
    "Rule",
    "SinkCase",
    "SourceCase",
    "StorageCase",
    "Stream",
]
