"""A pipeline as its author wrote it: file, included files and parameters, before anything is planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from arroyo_core.pipeline.document import Scalar, YamlMap, YamlValue
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.includes import INCLUDE, Includes
from arroyo_core.pipeline.languages import Language, Yaml
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.parameters import Given, Parameter, read_parameters
from arroyo_core.pipeline.substitution import References


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPipeline:
    """`root` is the whole document with everything in its place; `texts` are the files it comes from."""

    root: YamlValue = field(repr=False)
    texts: Mapping[str, str] = field(repr=False)
    parameters: Mapping[str, Parameter]
    unused_parameters: tuple[str, ...]


def load_pipeline(
    text: str,
    *,
    file: str,
    environment: Environment,
    given: Mapping[str, Given],
    mistakes: Mistakes,
    language: Language | None = None,
    has_nodes: bool = True,
) -> WrittenPipeline | None:
    """Read a pipeline with its parameters and its includes; None where it cannot be read at all.

    Without `has_nodes` only its settings are wanted, for which no operator has to be installed.
    """
    language = language or Yaml()
    includes = Includes()
    declared = _read_declared(text, file, language, environment, given, includes, mistakes)
    parameters = declared or {}
    references = References(
        environment,
        {name: parameter.value for name, parameter in parameters.items()},
        knows_all_parameters=declared is not None,
    )
    # Files that were read for the parameters are not read again: both passes must see the same text.
    read = language.read if has_nodes else language.read_settings
    root = read(text, file=file, references=references, includes=Includes(texts=includes.texts), mistakes=mistakes)
    if root is None:
        return None
    return WrittenPipeline(
        root=root,
        texts=includes.texts,
        parameters=parameters,
        unused_parameters=tuple(name for name in parameters if name not in references.used),
    )


def _read_declared(
    text: str,
    file: str,
    language: Language,
    environment: Environment,
    given: Mapping[str, Given],
    includes: Includes,
    mistakes: Mistakes,
) -> dict[str, Parameter] | None:
    """A pass for the parameters alone, which may stand anywhere and decide what the rest says.

    None where the file, or the one that declares them, cannot be read: then nobody knows which there are.
    """
    if not given and "parameters" not in text and INCLUDE not in text:
        return {}
    # What is wrong with the file itself is recorded by the pass over all of it.
    root = language.read_settings(
        text, file=file, references=References(environment), includes=includes, mistakes=Mistakes()
    )
    entry = root.entry("parameters") if isinstance(root, YamlMap) else None
    if root is None or (entry is not None and _is_unread(entry.value)):
        return None
    return read_parameters(entry.value if entry else None, given, mistakes)


def _is_unread(section: YamlValue) -> bool:
    """Whether it is in another file that cannot be read; a reference without a value is a mistake of its own."""
    return isinstance(section, Scalar) and section.is_unresolved and "${" not in section.written
