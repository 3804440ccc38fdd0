"""Languages of files: which one reads a file is told by the ending of its name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
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
from arroyo_core.plugin import PluginSet, known_elsewhere

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
        """The pipeline as a document with places, None where it cannot be read at all; mistakes are recorded."""

    def read_settings(
        self, text: str, *, file: str, references: References, includes: Includes, mistakes: Mistakes
    ) -> YamlValue | None:
        """The same with its name, its parameters and its checkpoints; `nodes` may be unresolved, and are not looked at.

        Parameters are read so before `read`, because they decide what the rest says.
        """
        return self.read(text, file=file, references=references, includes=includes, mistakes=mistakes)

    def for_planning(self, plugins: PluginSet, bundles: BundleLoader | None) -> Language:
        """This language as it reads with these plugins and bundles: for one that has to know operators to read.

        Called before `read` wherever a pipeline is planned; else it reads with the plugins that are installed.
        """
        return self

    def check(self, path: Path, *, bundles: BundleLoader | None, parameters: Mapping[str, Given]) -> str | None:
        """What `arroyo validate` asks of a file that is not a pipeline: raises `InvalidPipelineError` with every
        mistake, and says how much it found. None for a pipeline, which is planned instead.
        """
        return None

    def schema(self) -> Schema | None:
        """The JSON Schema of such files for editors, where it is not that of pipelines."""
        return None

    def comments(self, text: str) -> Iterable[tuple[int, int, str]]:
        """The comments of a text that can be read: line and column of each, from 1, and what it says.

        `arroyo lint` looks into them for `arroyo: ignore[code]`.
        """
        return ()

    def advice(self, code: str) -> str | None:
        """What to write in this language against a warning of `arroyo lint`; None for what the operator says."""
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
    chosen = max((ending for ending in found if name.endswith(ending)), key=len)
    owner = None if chosen else known_elsewhere("languages").get(Path(name).suffix.removeprefix("."))
    if owner is not None:
        message = f"files *{Path(name).suffix} are read by {owner}, which is not installed: pip install {owner}"
        raise PluginError(message)
    return found[chosen][0]
