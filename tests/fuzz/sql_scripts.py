"""SQL scripts: bytes to statements, and to a plan; mistakes have places that are in the script."""

from __future__ import annotations

from arroyo_sql.language import Sql
from arroyo_sql.statements import read_script

from arroyo_core.api.policy import PlanningPolicy, in_force
from arroyo_core.errors import InvalidPipelineError
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.substitution import References
from arroyo_core.pipeline.text import decode
from arroyo_core.plugin import installed_plugins

_FILE = "fuzzed.sql"
#: Nothing outside of the script is read.
_POLICY = PlanningPolicy(is_untrusted=True, roots=(), variables=frozenset({"NAME"}))
_ENVIRONMENT = {"NAME": "a value", "SECRET": "hidden"}


def run_statements(data: bytes) -> None:
    """The statements of a script, without their queries."""
    mistakes = Mistakes()
    text = _decode(data)
    with in_force(_POLICY):
        read_script(text, file=_FILE, references=_references(), mistakes=mistakes)
    _raise(mistakes, text)


def run(data: bytes) -> None:
    """The whole plan of a script."""
    mistakes = Mistakes()
    text = _decode(data)
    language = Sql().for_planning(installed_plugins(), None)
    with in_force(_POLICY):
        compiled = language.compile(text, file=_FILE, references=_references(), mistakes=mistakes)
    _raise(mistakes, text)
    assert compiled.planned is not None, "what cannot be planned has a mistake"


def _references() -> References:
    return References(Environment(_ENVIRONMENT))


def _decode(data: bytes) -> str:
    mistakes = Mistakes()
    text = decode(data, file=_FILE, mistakes=mistakes)
    mistakes.raise_if_any()
    assert text is not None, "what cannot be read has a mistake"
    return text


def _raise(mistakes: Mistakes, text: str) -> None:
    try:
        mistakes.raise_if_any()
    except InvalidPipelineError as invalid:
        lines = text.split("\n")
        for error in invalid.errors:
            at = error.at
            assert at is not None, f"a mistake without a place: {error.message}"
            assert 1 <= at.line <= len(lines), f"a line that is not in the script: {error}"
            assert 1 <= at.column <= len(lines[at.line - 1]) + 1, f"a column that is not in its line: {error}"
            assert "hidden" not in str(error) or "hidden" in text, "a secret is shown"
        raise
