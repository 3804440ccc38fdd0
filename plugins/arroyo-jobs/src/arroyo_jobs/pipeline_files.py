"""The files that `arroyo run` is given: single ones, and all pipelines of a folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from arroyo_core.errors import SetupError
from arroyo_core.pipeline.languages import Yaml, language_of
from arroyo_core.plugin import installed_plugins

_ENDINGS = (".yaml", ".yml")


def find_files(given: Sequence[str]) -> list[str]:
    """The pipeline files in the order in which they are given; those of a folder by their names.

    Raises `SetupError` for a folder without pipelines, and for a file that is given twice.
    """
    files = [file for path in given for file in (_in_folder(Path(path)) if Path(path).is_dir() else [path])]
    _check_once(files)
    return files


def is_pipeline_name(name: str) -> bool:
    """Whether a file of a folder is a pipeline of its own: not its tests, and not a part that others include."""
    stem, dot, ending = name.rpartition(".")
    if name.startswith(("_", ".")) or stem.endswith("_test"):
        return False
    return f"{dot}{ending}".lower() in _ENDINGS or not isinstance(language_of(name, installed_plugins()), Yaml)


def _in_folder(folder: Path) -> list[str]:
    found = sorted(str(path) for path in folder.iterdir() if path.is_file() and is_pipeline_name(path.name))
    if not found:
        raise SetupError(
            f"there are no pipelines in {folder}: they are its files *.yaml and *.yml, and those of languages that are "
            "installed, without those that start with _ or end in _test, and without those of folders below it"
        )
    return found


def _check_once(files: Iterable[str]) -> None:
    first: dict[Path, str] = {}
    for file in files:
        path = Path(file).resolve()
        if path in first:
            also = "" if first[path] == file else f", also as {first[path]}"
            raise SetupError(f"{file} is given twice{also}: a pipeline runs once at a time")
        first[path] = file
