"""Pipeline files: bytes to a document with places, to a specification, and formatted."""

from __future__ import annotations

import json

from arroyo_devtools.formatting.formatting import LayoutError, format_text

from arroyo_core.api.policy import PlanningPolicy, in_force
from arroyo_core.cli.diagnostics import mistake_json, render_mistake
from arroyo_core.errors import InvalidPipelineError
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.sections import sections_of
from arroyo_core.pipeline.spec import read_spec
from arroyo_core.pipeline.text import decode
from arroyo_core.pipeline.written import load_pipeline
from arroyo_core.plugin import installed_plugins

from .targets import CORPUS

_FOLDER = CORPUS / "yaml"
_FILE = str(_FOLDER / "fuzzed.yaml")
#: Files of the corpus may include each other.
_POLICY = PlanningPolicy(is_untrusted=True, roots=(_FOLDER,), variables=frozenset({"NAME"}))
_ENVIRONMENT = {"NAME": "a value", "SECRET": "hidden"}
_SECTIONS = sections_of(installed_plugins())


def run(data: bytes) -> None:
    """A specification, or mistakes that can be shown; what is YAML can be formatted, and that stays as it is."""
    with in_force(_POLICY):
        try:
            text = _decode(data)
            _format(text)
            _read(text)
        except InvalidPipelineError as invalid:
            for error in invalid.errors:
                json.dumps(mistake_json(error))
                assert "hidden" not in render_mistake(error) or b"hidden" in data, "a secret is shown"
            raise


def _decode(data: bytes) -> str:
    mistakes = Mistakes()
    text = decode(data, file=_FILE, mistakes=mistakes)
    mistakes.raise_if_any()
    assert text is not None, "what cannot be read has a mistake"
    return text


def _format(text: str) -> None:
    try:
        formatted = format_text(text, file=_FILE)
        again = format_text(formatted, file=_FILE)
    except LayoutError as error:
        raise AssertionError(error) from error
    assert again == formatted, "formatting twice is not formatting once"


def _read(text: str) -> None:
    mistakes = Mistakes()
    written = load_pipeline(text, file=_FILE, environment=Environment(_ENVIRONMENT), given={}, mistakes=mistakes)
    if written is not None:
        read_spec(written.root, mistakes, sections=_SECTIONS)
    mistakes.raise_if_any()
    assert written is not None, "what cannot be read has a mistake"
