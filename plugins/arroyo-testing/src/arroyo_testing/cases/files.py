"""Where tests are: in a pipeline file of YAML, under `tests`, or beside it in `NAME_test.yaml`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from arroyo_core.errors import InvalidPipelineError, PipelineError
from arroyo_core.pipeline.document import Entry, Scalar, YamlMap, describe
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.languages import Yaml, language_of
from arroyo_core.pipeline.loader import load_document
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.planner import read_text
from arroyo_core.pipeline.values import read_string
from arroyo_core.plugin import installed_plugins
from arroyo_testing.cases.spec import CaseSpec, read_cases

SUFFIX = "_test"
ENDINGS = (".yaml", ".yml")
_KEYS = ("pipeline", "tests")
_TESTS_KEY = re.compile(rb"^tests:", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFile:
    """A file with tests. `path` is as the user gave it."""

    path: Path
    pipeline: Path
    text: str = field(repr=False)
    cases: tuple[CaseSpec, ...]


def is_case_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file holds tests alone, by its name."""
    name = Path(path)
    return name.suffix in ENDINGS and name.stem.endswith(SUFFIX)


def case_file_of(pipeline: Path) -> Path:
    """The file beside a pipeline that holds its tests, whether it is there or not. It is YAML for every language."""
    ending = pipeline.suffix if _is_yaml(pipeline) else ENDINGS[0]
    return pipeline.with_name(f"{pipeline.stem}{SUFFIX}{ending}")


def find_case_files(path: Path) -> list[Path]:
    """The files with tests that a path stands for: itself, and what is beside or below it.

    A folder stands for all files below it that hold tests.
    """
    if path.is_dir():
        found = (each for each in sorted(path.rglob("*.y*ml")) if each.suffix in ENDINGS and each.is_file())
        return [each for each in found if is_case_file(each) or _TESTS_KEY.search(each.read_bytes())]
    if is_case_file(path):
        return [path]
    beside = case_file_of(path)
    if not beside.is_file():
        return [path]
    return [path, beside] if _is_yaml(path) else [beside]


def load_case_files(paths: Iterable[Path]) -> list[CaseFile]:
    """The tests of files and folders, each file once.

    Raises `InvalidPipelineError` with every mistake in their shape.
    """
    found = dict.fromkeys(each for path in paths for each in find_case_files(path))
    errors: list[PipelineError] = []
    files = []
    for path in found:
        try:
            files.append(load_case_file(path))
        except InvalidPipelineError as invalid:
            errors += invalid.errors
    if errors:
        raise InvalidPipelineError(errors)
    return files


def load_case_file(path: Path) -> CaseFile:
    """The tests of one file: none of a pipeline in another language than YAML."""
    mistakes = Mistakes()
    text = read_text(path, mistakes)
    if not _is_yaml(path):
        mistakes.raise_if_any()
        return CaseFile(path=path, pipeline=path, text=text, cases=())
    found = Mistakes()
    root = load_document(text, file=str(path), environment=Environment(os.environ), mistakes=found)
    if root is None:
        raise InvalidPipelineError(found.sorted())
    if not isinstance(root, YamlMap):
        mistakes.add(f"a file of tests must be a mapping, not {describe(root)}", at=root.at)
    mistakes.raise_if_any()
    assert isinstance(root, YamlMap)
    entry = root.entry("tests")
    if is_case_file(path):
        mistakes.extend(found)
        pipeline = _read_pipeline(root, path, mistakes)
    else:
        # What is wrong with the pipeline itself is told when it is planned.
        pipeline = path
        if entry is not None:
            _extend_below(mistakes, found, root, entry)
    is_null = entry is not None and isinstance(entry.value, Scalar) and entry.value.is_null
    cases = read_cases(entry, mistakes) if entry is not None and not is_null else ()
    mistakes.raise_if_any()
    return CaseFile(path=path, pipeline=pipeline, text=text, cases=cases)


def _read_pipeline(root: YamlMap, path: Path, mistakes: Mistakes) -> Path:
    for each in root.entries:
        if each.key not in _KEYS:
            mistakes.add_unknown(
                f"a file of tests has no key {each.key!r}", at=each.key_at, name=each.key, choices=_KEYS
            )
    if root.entry("tests") is None:
        mistakes.add("a file of tests needs the key 'tests'", at=root.at)
    entry = root.entry("pipeline")
    if entry is None:
        pipeline = _pipeline_of(path)
        if not pipeline.is_file():
            message = f"there is no {pipeline}, whose tests these are by their name; give 'pipeline: FILE'"
            mistakes.add(message, at=root.at)
        return pipeline
    text = read_string(entry.value, "'pipeline'", mistakes)
    pipeline = path.parent / (text or "")
    if text is not None and not pipeline.is_file():
        mistakes.add(f"there is no file {pipeline}", at=entry.value.at, value=text)
    return pipeline


def _pipeline_of(path: Path) -> Path:
    """The pipeline that a file of tests is named after: in YAML, or in another language where there is none."""
    name = path.stem.removesuffix(SUFFIX)
    pipeline = path.with_name(name + path.suffix)
    if pipeline.is_file():
        return pipeline
    others = (each for each in sorted(path.parent.iterdir()) if each.stem == name and each.is_file())
    return next((each for each in others if not _is_yaml(each)), pipeline)


def _is_yaml(path: Path) -> bool:
    return path.suffix in ENDINGS or isinstance(language_of(path, installed_plugins()), Yaml)


def _extend_below(mistakes: Mistakes, found: Mistakes, root: YamlMap, entry: Entry) -> None:
    """Take over what was found inside one entry of a file."""
    after = [each.key_at.line for each in root.entries if each.key_at.line > entry.key_at.line]
    until = min(after, default=None)
    inside: Sequence[PipelineError] = [
        error
        for error in found.sorted()
        if error.at is not None and error.at.line >= entry.key_at.line and (until is None or error.at.line < until)
    ]
    for error in inside:
        mistakes.add(error.message, at=error.at, value=error.value, suggestion=error.suggestion)
