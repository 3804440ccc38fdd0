"""Scripts as tests read them."""

from __future__ import annotations

from dataclasses import dataclass

from arroyo_sql.script import Script, Statement
from arroyo_sql.statements import read_script

from arroyo_core.errors import Location
from arroyo_core.pipeline.document import Scalar
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.substitution import References

HERE = Location("q.sql", 1, 1)


@dataclass(frozen=True)
class Read:
    """What was read of a script, and each mistake as `line:column message`."""

    script: Script
    mistakes: list[str]

    @property
    def only(self) -> Statement:
        (statement,) = self.script.statements
        return statement


def given(text, *, is_given=True, is_plain=False):
    return Scalar(at=HERE, text=text, written=text, is_plain=is_plain, is_given=is_given)


def read(text, *, environment=None, parameters=None):
    mistakes = Mistakes()
    references = References(Environment(environment or {}), parameters or {})
    reading = read_script(text, file="q.sql", references=references, mistakes=mistakes)
    return Read(reading.script, shown(mistakes))


def shown(mistakes):
    return [
        f"{error.at.line}:{error.at.column} {error.message}" + (f" -> {error.suggestion}" if error.suggestion else "")
        for error in mistakes.sorted()
    ]
