"""Tests as the planner and `arroyo validate` see them: files of their own, and a section of pipeline files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from arroyo_core.errors import Location
from arroyo_core.pipeline.document import Entry, YamlValue
from arroyo_core.pipeline.includes import Includes
from arroyo_core.pipeline.languages import Language
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.parameters import Given
from arroyo_core.pipeline.scalar_schemas import Schema
from arroyo_core.pipeline.sections import Section
from arroyo_core.pipeline.substitution import References
from arroyo_core.pipeline.udfs import BundleLoader
from arroyo_core.pipeline.views.labels import count
from arroyo_testing.cases.files import ENDINGS, SUFFIX, load_case_file
from arroyo_testing.cases.schema import case_file_schema, cases_schema
from arroyo_testing.cases.spec import read_cases


class CaseFiles(Language):
    """Files that hold tests alone: `NAME_test.yaml`."""

    endings = tuple(f"{SUFFIX}{ending}" for ending in ENDINGS)

    def read(
        self, text: str, *, file: str, references: References, includes: Includes, mistakes: Mistakes
    ) -> YamlValue | None:
        mistakes.add(f"this is a file of tests, not a pipeline: arroyo test {file}", at=Location(file, 1, 1))
        return None

    def check(self, path: Path, *, bundles: BundleLoader | None, parameters: Mapping[str, Given]) -> str:
        """Tests that expect a failure are checked when they are run."""
        from arroyo_testing.cases.suite import PipelineCases

        file = load_case_file(path)
        pipeline = PipelineCases(file.pipeline, bundles=bundles, parameters=parameters)
        for spec in file.cases:
            if spec.error is None:
                pipeline.compile(spec)
        return count(len(file.cases), "test")

    def schema(self) -> Schema:
        return case_file_schema()


class CaseSection(Section):
    """Only the shape of tests is checked when the pipeline is planned."""

    key = "tests"
    description = "Tests of the pipeline, for `arroyo test`."

    def check(self, entry: Entry, mistakes: Mistakes) -> None:
        read_cases(entry, mistakes)

    def schema(self) -> Schema:
        return cases_schema()
