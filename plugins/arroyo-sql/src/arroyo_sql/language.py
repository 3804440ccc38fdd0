"""`.sql` files as pipelines: a script becomes the document that YAML would be, with places in the SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from arroyo_core.errors import Location
from arroyo_core.pipeline.document import YamlMap, YamlValue
from arroyo_core.pipeline.includes import Includes
from arroyo_core.pipeline.languages import Language
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.substitution import References
from arroyo_core.pipeline.udfs import BundleLoader
from arroyo_core.plugin import PluginSet, installed_plugins
from arroyo_sql.bundles import bundles_of
from arroyo_sql.lexer import SourceText, find_comments
from arroyo_sql.places import mapping
from arroyo_sql.planned import PlannedQuery
from arroyo_sql.render import former_ids, nodes_entry, untold_nodes
from arroyo_sql.script import Script
from arroyo_sql.settings import Settings, read_settings
from arroyo_sql.statements import Reading, read_script, read_setting_statements

_ADVICE: Mapping[str, str] = {
    "unbounded-state": "write SET updating_ttl = '1 day' before the query, or group by a window",
    "missing-watermark": "declare WATERMARK FOR the column of event time in CREATE TABLE",
}
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class CompiledScript:
    """A script with its plan; `planned` is None where a mistake is recorded."""

    root: YamlMap
    script: Script
    planned: PlannedQuery | None


class Sql(Language):
    """The language of `.sql` files."""

    endings = (".sql",)

    def __init__(self, plugins: PluginSet | None = None, bundles: BundleLoader | None = None) -> None:
        self._plugins = plugins
        self._bundles = bundles

    def for_planning(self, plugins: PluginSet, bundles: BundleLoader | None) -> Sql:
        return Sql(plugins, bundles)

    def read(
        self, text: str, *, file: str, references: References, includes: Includes, mistakes: Mistakes
    ) -> YamlValue | None:
        with includes.entered(file, text):
            return self.compile(text, file=file, references=references, mistakes=mistakes).root

    def read_settings(
        self, text: str, *, file: str, references: References, includes: Includes, mistakes: Mistakes
    ) -> YamlValue | None:
        with includes.entered(file, text):
            found = read_setting_statements(text, file=file, references=references, mistakes=mistakes)
            settings = read_settings(found, mistakes)
            return _document(settings, file)

    def comments(self, text: str) -> Iterable[tuple[int, int, str]]:
        source = SourceText("", text)
        for start, comment in find_comments(source):
            at = source.at(start)
            yield at.line, at.column, comment

    def advice(self, code: str) -> str | None:
        return _ADVICE.get(code)

    def compile(self, text: str, *, file: str, references: References, mistakes: Mistakes) -> CompiledScript:
        """The document of a script, and what it was made of. Without nodes where a mistake is recorded."""
        found = Mistakes()
        reading = read_script(text, file=file, references=references, mistakes=found)
        compiled = self.compile_reading(reading, references=references, mistakes=found)
        mistakes.extend(found)
        return compiled

    def compile_reading(self, reading: Reading, *, references: References, mistakes: Mistakes) -> CompiledScript:
        """The same of statements that are read already; without nodes where `mistakes` has some."""
        found = Mistakes()
        found.extend(mistakes)
        settings = read_settings(reading.script.settings, found)
        root = _document(settings, reading.script.file)
        planned = None
        if not found and reading.is_whole:
            root, planned = self._planned(reading, settings, references, found)
        mistakes.extend(found)
        return CompiledScript(root, reading.script, planned)

    def _planned(
        self, reading: Reading, settings: Settings, references: References, mistakes: Mistakes
    ) -> tuple[YamlMap, PlannedQuery | None]:
        # DataFusion is loaded for those who compile only.
        from arroyo_sql.planner import plan_script

        script = reading.script
        plugins = self._plugins or installed_plugins()
        bundles = bundles_of(script, settings)
        loaded = bundles.load(plugins, self._bundles, references.environment, mistakes)
        document = _document(settings, script.file)
        if mistakes:
            return document, None
        found = Mistakes()
        planned = plan_script(script, plugins=loaded, environment=references.environment, mistakes=found)
        if found or planned is None:
            _extend_redacted(mistakes, found, references.environment.redact)
            return document, None
        at = _beginning(script.file)
        former = former_ids(planned.nodes, settings.former, mistakes)
        entries = [entry for entry in document.entries if entry.key != "nodes"]
        entries += [bundles.entry] if bundles.entry is not None else []
        entries.append(nodes_entry(planned.nodes, at=at, former=former, redact=reading.conceal))
        return mapping(at, entries), planned


def pipeline_name(file: str) -> str:
    """The name of a pipeline that says none: that of its file."""
    return _FORBIDDEN.sub("_", Path(file).stem).strip("._") or "query"


def _extend_redacted(mistakes: Mistakes, found: Mistakes, redact: Callable[[str], str]) -> None:
    """Add mistakes without what they have of the environment: operators quote the values that they complain about."""
    for error in found.sorted():
        value = redact(error.value) if isinstance(error.value, str) else error.value
        details = "\n".join(getattr(error, "__notes__", ()))
        mistakes.add(
            redact(error.message),
            at=error.at,
            value=value,
            allowed=[redact(choice) for choice in error.allowed],
            suggestion=error.suggestion,
            details=redact(details) or None,
            code=error.code,
        )


def _document(settings: Settings, file: str) -> YamlMap:
    at = _beginning(file)
    entries = settings.entries(default_name=pipeline_name(file), at=at)
    return mapping(at, [*entries, untold_nodes(at)])


def _beginning(file: str) -> Location:
    return Location(file, 1, 1)
