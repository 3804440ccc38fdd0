"""Sections: keys of pipeline files that belong to other distributions, such as the tests of a pipeline."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from arroyo_core.api import Origin
from arroyo_core.errors import PluginError
from arroyo_core.pipeline import file_keys
from arroyo_core.pipeline.document import Entry
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.scalar_schemas import Schema
from arroyo_core.plugin import PluginSet, known_elsewhere


class Section(ABC):
    """A key of pipeline files. The planner checks it and passes over it: it does not change what a pipeline does.

    Plugins give theirs through the hook `arroyo_section`.
    """

    key: ClassVar[str]
    #: One sentence, for the reference and for editors.
    description: ClassVar[str]

    @abstractmethod
    def check(self, entry: Entry, mistakes: Mistakes) -> None:
        """Record what is wrong with the shape of the section."""

    @abstractmethod
    def schema(self) -> Schema:
        """The JSON Schema of its value."""


def pipeline_keys(sections: Mapping[str, Section]) -> file_keys.Section:
    """The keys of a pipeline file: the core's own, and those of plugins.

    A pipeline with tests runs also where nothing is installed that could run or check them.
    """
    elsewhere = {key: f"See {distribution}." for key, distribution in known_elsewhere("sections").items()}
    texts = elsewhere | {key: section.description for key, section in sections.items()}
    others = [file_keys.Key(name=key, form=file_keys.Other(), text=text) for key, text in texts.items()]
    return file_keys.Section((*file_keys.PIPELINE.keys, *others))


def sections_of(plugins: PluginSet) -> Mapping[str, Section]:
    """The sections of all plugins, by key."""
    found: dict[str, tuple[Section, Origin]] = {}
    for section, origin in plugins.hooks.collect("arroyo_section", Section):
        if section.key in found:
            raise PluginError(f"the key {section.key!r} is claimed by {found[section.key][1]} and by {origin}")
        found[section.key] = (section, origin)
    return {key: section for key, (section, _) in found.items()}
