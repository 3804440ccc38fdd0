"""Bundles of user functions that a script names: opened before its queries are planned, since these call them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arroyo_core.pipeline.document import Entry, Scalar
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.spec import PipelineSpec, read_spec
from arroyo_core.pipeline.udfs import BundleLoader, load_udfs
from arroyo_core.plugin import PluginSet
from arroyo_sql.places import mapping, scalar, sequence
from arroyo_sql.script import Bundle, Option, Script
from arroyo_sql.settings import Settings


@dataclass(frozen=True, slots=True)
class Bundles:
    """The bundles of a script as the `udfs` of a pipeline, None where it has none; and whose functions it names."""

    entry: Entry | None
    statements: tuple[Bundle, ...]

    def load(
        self, plugins: PluginSet, loader: BundleLoader | None, environment: Environment, mistakes: Mistakes
    ) -> PluginSet:
        """The plugins with the functions of all bundles; what is wrong with one is recorded."""
        if self.entry is None:
            return plugins
        found = Mistakes()
        loaded, _ = load_udfs(_spec(self.entry), loader, plugins=plugins, environment=environment, mistakes=found)
        mistakes.extend(found)
        if not found:
            self._check_names(plugins, loaded, mistakes)
        return loaded

    def _check_names(self, before: PluginSet, after: PluginSet, mistakes: Mistakes) -> None:
        added = sorted(set(after.registry.udfs) - set(before.registry.udfs))
        for statement in self.statements:
            if statement.name is not None and statement.name not in added:
                message = f"no bundle of the script has a function {statement.name!r}"
                mistakes.add_unknown(message, at=statement.at, name=statement.name, choices=added)


def bundles_of(script: Script, settings: Settings) -> Bundles:
    """The bundles that `CREATE FUNCTION` and `SET udfs` name, each once."""
    statements = tuple(statement for statement in script.statements if isinstance(statement, Bundle))
    by_url: dict[str, Entry] = {}
    items = []
    for statement in statements:
        key = str(statement.url.value)
        if key not in by_url:
            by_url[key] = Entry(key="url", key_at=statement.url.key_at, value=_scalar(statement.url))
            items.append(mapping(statement.at, [by_url[key], *_others(statement.options)]))
    udfs = settings.udfs
    if udfs is not None:
        urls = udfs.value if isinstance(udfs.value, list) else [udfs.value]
        for url in urls:
            value = scalar(udfs.at, url, udfs.written if udfs.is_secret else None)
            items.append(mapping(udfs.at, [Entry(key="url", key_at=udfs.at, value=value)]))
    if not items:
        return Bundles(None, statements)
    return Bundles(Entry(key="udfs", key_at=items[0].at, value=sequence(items[0].at, items)), statements)


def _others(options: Mapping[str, Option]) -> Sequence[Entry]:
    return [Entry(key=key, key_at=option.key_at, value=_scalar(option)) for key, option in options.items()]


def _scalar(option: Option) -> Scalar:
    return scalar(option.at, option.value, option.written if option.is_secret else None)


def _spec(entry: Entry) -> PipelineSpec:
    """A pipeline with these bundles alone: what is wrong with their keys is recorded when the whole is read."""
    return read_spec(mapping(entry.key_at, [entry]), Mistakes())
