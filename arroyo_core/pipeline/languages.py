"""Languages of files: which one reads a file is told by the ending of its name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from arroyo_core.api import Origin
from arroyo_core.errors import PluginError
from arroyo_core.pipeline.document import YamlValue
from arroyo_core.pipeline.includes import Includes
from arroyo_core.pipeline.loader import load_document
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.parameters import Given
from arroyo_core.pipeline.scalar_schemas import Schema
from arroyo_core.pipeline.substitution import References
from arroyo_core.pipeline.udfs import BundleLoader
from arroyo_core.plugin import PluginSet

#: Before that of any plugin.
_OWN = Origin("arroyo-core", "")


class Language(ABC):
    """Reads files with certain endings. Plugins give theirs through the hook `arroyo_language`."""

    #: Of names, in lower case: `.sql`, or `_test.yaml`. The longest that fits decides.
    endings: ClassVar[tuple[str, ...]]

    @abstractmethod
    def read(
        self, text: str, *, file: str, references: References, includes: Includes, mistakes: Mistakes
    ) -> YamlValue | None:
        """The pipeline as a document with places, None where it cannot be read at all; mistakes are recorded.

        May be called twice for one file: parameters are read first, because they decide what the rest says.
        """

    def check(self, path: Path, *, bundles: BundleLoader | None, parameters: Mapping[str, Given]) -> str | None:
        """What `arroyo validate` asks of a file that is not a pipeline: raises `InvalidPipelineError` with every
        mistake, and says how much it found. None for a pipeline, which is planned instead.
        """
        return None

    def schema(self) -> Schema | None:
        """The JSON Schema of such files for editors, where it is not that of pipelines."""
        return None


class Yaml(Language):
    """The core's own language."""

    endings = (".yaml", ".yml", "")

    def read(
        self, text: str, *, file: str, references: References, includes: Includes, mistakes: Mistakes
    ) -> YamlValue | None:
        return load_document(
            text,
            file=file,
            environment=references.environment,
            references=references,
            includes=includes,
            mistakes=mistakes,
        )


def language_of(file: str | Path, plugins: PluginSet) -> Language:
    """The language that the name of a file tells: YAML where no other claims it."""
    name = Path(file).name.lower()
    found: dict[str, tuple[Language, Origin]] = {"": (Yaml(), _OWN)}
    for language, origin in [(Yaml(), _OWN), *plugins.hooks.collect("arroyo_language", Language)]:
        for ending in language.endings:
            if ending in found and ending and found[ending][1] != origin:
                raise PluginError(f"files *{ending} are claimed by {found[ending][1]} and by {origin}")
            found[ending] = (language, origin)
    return found[max((ending for ending in found if name.endswith(ending)), key=len)][0]
